package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/mcp"
	"github.com/parley-server/parley/internal/store/apikey"
)

const ping = `{"jsonrpc":"2.0","id":"p-1","method":"ping"}`

// TestWhatMayNotComeInIsRefusedInTheEnvelope checks that errors before the protocol layer have the
// envelope and the order of the REST API.
func TestWhatMayNotComeInIsRefusedInTheEnvelope(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.BaseURL = "https://chat.example/parley" })
	chat := s.Issue(t, s.Workspace, apikey.Chat)
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, c := range []struct {
		name, method, key, body string
		header                  []string
		status                  int
		code                    string
	}{
		{"a GET", "GET", s.key, "", nil, 405, "METHOD_NOT_ALLOWED"},
		{"a DELETE without a key", "DELETE", "", "", nil, 405, "METHOD_NOT_ALLOWED"},
		{"a foreign page", "POST", s.key, ping, []string{"Origin", "https://evil.example"}, 403, "ORIGIN_NOT_ALLOWED"},
		{"a page without a name", "POST", s.key, ping, []string{"Origin", "null"}, 403, "ORIGIN_NOT_ALLOWED"},
		{"a page that looks like ours", "POST", s.key, ping, []string{"Origin", "https://chat.example.evil.example"}, 403, "ORIGIN_NOT_ALLOWED"},
		{"a rebound name", "POST", s.key, ping, []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403, "ORIGIN_NOT_ALLOWED"},
		{"a rebound name, no page", "POST", s.key, ping, []string{"Host", "evil.example"}, 403, "ORIGIN_NOT_ALLOWED"},
		{"no key", "POST", "", ping, nil, 401, "MISSING_API_KEY"},
		{"a wrong key", "POST", "prl_nonsense", "", []string{"Accept", "text/html"}, 401, "INVALID_API_KEY"},
		{"a key without the scope", "POST", chat, large, nil, 403, "INSUFFICIENT_SCOPE"},
		{"no stream wanted", "POST", s.key, large, []string{"Accept", "application/json"}, 406, "NOT_ACCEPTABLE"},
		{"too much", "POST", s.key, large, []string{"Content-Type", "text/plain"}, 413, "PAYLOAD_TOO_LARGE"},
		{"no JSON type", "POST", s.key, "x", []string{"Content-Type", "text/plain"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"compressed", "POST", s.key, ping, []string{"Content-Encoding", "gzip"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
	} {
		r := s.do(t, c.method, mcp.Path, c.key, c.body, c.header...)
		var envelope struct {
			Error     struct{ Code, Message, Type string }
			RequestID string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(r.body), &envelope); err != nil || r.status != c.status || envelope.Error.Code != c.code ||
			envelope.Error.Message == "" ||
			envelope.Error.Type == "" || envelope.RequestID == "" || r.header.Get("X-Request-Id") != envelope.RequestID {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
		if c.status == 405 && r.header.Get("Allow") != "OPTIONS, POST" {
			t.Errorf("%s: Allow %q", c.name, r.header.Get("Allow"))
		}
		if c.status == 401 && !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: WWW-Authenticate %q", c.name, r.header.Get("WWW-Authenticate"))
		}
	}
	for name, header := range map[string][]string{
		"no page": nil, "our page": {"Origin", "https://chat.example"}, "a page of this machine": {"Origin", "http://localhost:6274"},
		"our name": {"Host", "chat.example"}, "through a proxy": {"Host", "other.example", "X-Forwarded-For", "192.0.2.1"},
		"anything accepted": {"Accept", ""},
	} {
		if r := s.post(t, s.key, ping, header...); r.status != 200 || !strings.Contains(r.body, `"id":"p-1"`) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := s.do(t, "OPTIONS", mcp.Path, "", ""); r.status != 204 || r.header.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("OPTIONS: %d %v", r.status, r.header)
	}
}

// TestWrongMessagesAreAnsweredInTheProtocol checks that invalid messages get protocol errors, with
// their id if they have one.
func TestWrongMessagesAreAnsweredInTheProtocol(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	newest := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "get_session"}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range []struct {
		body   string
		header []string
		status int
		id     string
		code   int
	}{
		{``, nil, 400, `null`, -32700},
		{`{"jsonrpc":"2.0","id":3`, nil, 400, `null`, -32700},
		{"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"\xff\"}", nil, 400, `null`, -32700},
		{`3`, nil, 400, `null`, -32600},
		{`[]`, nil, 400, `null`, -32600},
		{`[` + strings.Repeat(ping+",", 20) + ping + `]`, nil, 400, `null`, -32600},
		{`{"id":4,"method":"ping"}`, nil, 400, `4`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, `null`, -32600},
		{`{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`, nil, 200, `5`, -32601},
		{`{"jsonrpc":"2.0","id":"é","method":"subscriptions/listen"}`, nil, 200, `"é"`, -32601},
		{`{"jsonrpc":"2.0","id":6,"method":"resources/list","params":{` + meta + `}}`, newest, 404, `6`, -32601},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, nil, 200, `7`, -32602},
		{`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"nothing"}}`, nil, 200, `8`, -32602},
		{`{"jsonrpc":"2.0","id":9,"method":"ping"}`, []string{"MCP-Protocol-Version", "1999-12-31"}, 400, `9`, -32022},
		{`{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{` + meta + `}}`, newest, 400, `10`, -32020},
		{`{"jsonrpc":"2.0","id":11,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			[]string{"MCP-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, 400, `11`, -32022},
	} {
		r := s.post(t, s.key, c.body, c.header...)
		body := strings.TrimPrefix(r.body, "event: message\ndata: ")
		var e struct {
			Version string `json:"jsonrpc"`
			ID      json.RawMessage
			Error   struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil || r.status != c.status || string(e.ID) != c.id || e.Error.Code != c.code ||
			e.Error.Message == "" || e.Version != "2.0" {
			t.Errorf("%.100s: %d %s", c.body, r.status, r.body)
		}
	}
	// Notifications get no response.
	for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"nonsense"}`} {
		if r := s.post(t, s.key, body); r.status != 202 || r.body != "" {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

// TestEveryRevisionIsSpoken performs the handshake of each revision.
func TestEveryRevisionIsSpoken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		r := s.post(t, s.key, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+revision+
			`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		if r.status != 200 || !strings.Contains(r.body, `"protocolVersion":"`+revision+`"`) || strings.Contains(r.body, "listChanged") ||
			r.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", revision, r.status, r.body)
		}
		r = s.post(t, s.key, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_sessions","arguments":{}}}`,
			"MCP-Protocol-Version", revision)
		if r.status != 200 || !strings.Contains(r.body, `"structuredContent":{"data":[]`) {
			t.Errorf("%s: %d %s", revision, r.status, r.body)
		}
	}
	r := s.post(t, s.key, `{"jsonrpc":"2.0","id":1,"method":"server/discover",`+
		`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover")
	if r.status != 200 || !strings.Contains(r.body, `"2026-07-28","2025-11-25"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestWrongArgumentsAreToldAllAtOnce checks that one result of a tool reports all invalid
// arguments, in the terms of REST.
func TestWrongArgumentsAreToldAllAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.connect(t, s.key, nil)
	for _, test := range []struct {
		tool string
		args map[string]any
		want string // "param rule" pairs, in order
	}{
		{"send_message", nil, "/command exactly_one"},
		{"send_message", map[string]any{"command": "x", "skill": "y"}, "/skill exactly_one"},
		{"send_message", map[string]any{"command": "x", "stream": true}, "/stream unknown"},
		{"send_message", map[string]any{"command": "x", "callback": "https://x.example"}, "/callback unknown"},
		{"send_message", map[string]any{"command": 3, "session_id": "x", "limits": map[string]any{"max_turns": 0, "x": 1},
			"idempotency_key": "\n"},
			"/command type, /idempotency_key format, /limits/max_turns minimum, /limits/x unknown, /session_id format"},
		{"list_skills", map[string]any{"name": "x"}, "/name unknown"},
		{"list_sessions", map[string]any{"limit": 101, "status": "done", "created_after": "yesterday", "order": "up"},
			"/limit maximum, /status enum, /created_after format, /order enum"},
		{"get_session", nil, "/session_id required"},
		{"get_messages", map[string]any{"session_id": "../..", "limit": "2"}, "/session_id format, /limit type"},
		{"list_pending", map[string]any{"session_id": 1}, "/session_id type"},
		{"decide_approval", nil, "/approval_id required, /decision required"},
		{"decide_approval", map[string]any{"approval_id": "x", "decision": "perhaps", "wait": 1, "reason": strings.Repeat("x", 501)},
			"/approval_id format, /wait type, /decision enum, /reason max_length"},
		{"cancel_session", map[string]any{"session_id": true}, "/session_id type"},
		{"wiki_read", map[string]any{"page": ""}, "/page min_length"},
		{"wiki_search", map[string]any{"query": " ", "limit": 0.5}, "/query min_length, /limit type"},
		{"save_wiki", map[string]any{"expected_version": 0}, "/page required, /content required, /expected_version minimum"},
	} {
		got := c.call(test.tool, test.args)
		if !got.failed || got.Fault == nil || got.Fault.Code != "INVALID_REQUEST" {
			t.Errorf("%s %v: %s", test.tool, test.args, got.raw)
			continue
		}
		var list []string
		for _, v := range got.Fault.Violations {
			list = append(list, v.Param+" "+v.Rule)
			if v.Message == "" || !strings.Contains(got.text, v.Message) {
				t.Errorf("%s: the text lacks %q: %s", test.tool, v.Message, got.text)
			}
		}
		if strings.Join(list, ", ") != test.want {
			t.Errorf("%s %v: %s", test.tool, test.args, strings.Join(list, ", "))
		}
	}
}

// TestNumbersAreKept checks that a number keeps its exact text, however large: two different
// numbers make two messages, and a number that no schema accepts is rejected as such.
func TestNumbersAreKept(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	send := func(number, key string) string {
		return s.post(t, s.key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message",`+
			`"arguments":{"command":"@say x","idempotency_key":"`+key+
			`","response_schema":{"type":"object","properties":{"n":{"type":"number","minimum":`+number+`}}}}}}`).body
	}
	if got := send("1e999", "huge"); !strings.Contains(got, `"code":"INVALID_RESPONSE_SCHEMA"`) {
		t.Error(got)
	}
	for _, meta := range []string{`"x":1e999`, `"progressToken":1` + strings.Repeat("0", 400), `"a/b":{"c":[1e999]}`} {
		if got := s.post(t, s.key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills","_meta":{`+meta+
			`}}}`).body; !strings.Contains(got, `"structuredContent"`) {
			t.Errorf("%s: %s", meta, got)
		}
	}
	if got := send("9007199254740993", "k"); strings.Contains(got, `"fault"`) {
		t.Error(got)
	}
	if got := send("9007199254740992", "k"); !strings.Contains(got, `"code":"IDEMPOTENCY_KEY_REUSED"`) {
		t.Error(got)
	}
}
