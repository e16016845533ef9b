package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// response is a JSON-RPC response.
type response struct {
	Version string `json:"jsonrpc"`
	ID      json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// responses returns the responses in an object or a stream.
func (a answer) responses(t testing.TB) (list []response) {
	t.Helper()
	texts := []string{a.body}
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		texts = nil
		for line := range strings.SplitSeq(a.body, "\n") {
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				texts = append(texts, text)
			}
		}
	}
	for _, text := range texts {
		var r response
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.Version != "2.0" {
			t.Errorf("%q: %v", text, err)
		}
		list = append(list, r)
	}
	return list
}

// only returns the only response.
func (a answer) only(t testing.TB) response {
	t.Helper()
	if list := a.responses(t); len(list) == 1 {
		return list[0]
	}
	t.Fatalf("no single response: %d %s", a.status, a.body)
	return response{}
}

// TestIDsComeBackAsTheyWere checks that a string or an integer of any length is repeated exactly,
// and that any other id is rejected.
func TestIDsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, id := range []string{`0`, `-7`, `9007199254740993`, `-9223372036854775809`, "1" + strings.Repeat("0", 308), `""`, `"1"`,
		`"é\u00e9\n\ud800<>&"`} {
		for _, rest := range []string{`"method":"ping"`, `"method":"tools/call","params":{"name":"list_skills"}`,
			`"method":"tools/call","params":{"name":"list_skills","_meta":{"progressToken":1}}`, `"method":"none"`, `"method":3`} {
			r := s.post(t, s.key, `{"jsonrpc":"2.0","id":`+id+`,`+rest+`}`)
			if got := r.only(t); string(got.ID) != id {
				t.Errorf("%s %s: %s", id, rest, r.body)
			}
		}
	}
	for _, id := range []string{`1.5`, `1e308`, `1.0`, `null`, `true`, `{}`, `[1]`} {
		message := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"send_message","arguments":{"command":"x"}}}`
		for _, body := range []string{message, "[" + message + "]"} {
			r := s.post(t, s.key, body)
			if got := r.only(t); string(got.ID) != "null" || got.Error == nil || got.Error.Code != -32600 ||
				!strings.Contains(got.Error.Message, "id must be a string or an integer") {
				t.Errorf("%s: %d %s", body, r.status, r.body)
			}
		}
	}
	var turns int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 0 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestEveryMessageOfABatchIsAnswered checks that each message has its own response, independent of
// the others.
func TestEveryMessageOfABatchIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const call = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"send_message","arguments":{"command":"@say Hello."},` +
		`"_meta":{"progressToken":7}}}`
	list := []string{
		ping, call, `{"jsonrpc":"2.0","id":9007199254740993,"method":"none"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `3`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"none"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`,
	}
	want := map[string]int{`"p-1"`: 0, `"c"`: 0, `9007199254740993`: -32601, `null`: -32600, `4`: -32602, `5`: -32600}
	r := s.post(t, s.key, "["+strings.Join(list, ",")+"]", "MCP-Protocol-Version", "2025-03-26")
	n := 0
	for _, got := range r.responses(t) {
		if got.ID == nil && got.Result == nil && got.Error == nil { // progress
			continue
		}
		n++
		code := 0
		if got.Error != nil {
			code = got.Error.Code
		}
		if w, ok := want[string(got.ID)]; !ok || code != w {
			t.Errorf("%s: %+v", got.ID, got)
		}
	}
	if r.status != 200 || n != len(want) || !strings.Contains(r.body, "Hello.") || !strings.Contains(r.body, `"progressToken":7`) {
		t.Errorf("%d answers of %d: %d %s", n, len(want), r.status, r.body)
	}
	if r := s.post(t, s.key, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); r.status != 202 || r.body != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestABatchIsRefusedBeforeAnythingIsDone checks batches in which an id appears twice, and batches
// in revisions that do not support them.
func TestABatchIsRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	call := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"send_message","arguments":{"command":"@say x"}}}`
	}
	for _, c := range []struct{ name, revision, body, want string }{
		{"none", "", `[]`, "1 to 20 messages"},
		{"the same", "", "[" + call(`1`) + "," + call(`2`) + "," + call(`1`) + "]", "The id 1 is there twice"},
		{"the same, written otherwise", "2025-03-26", "[" + call(`"a"`) + "," + call(`"\u0061"`) + "]", "is there twice"},
		{"the first revision", "2024-11-05", "[" + call(`1`) + "]", "2024-11-05 knows no batches"},
		{"a later one", "2025-06-18", "[" + call(`1`) + "]", "2025-06-18 knows no batches"},
		{"the newest", "2026-07-28", "[" + call(`1`) + "]", "2026-07-28 knows no batches"},
	} {
		r := s.post(t, s.key, c.body, "MCP-Protocol-Version", c.revision)
		if got := r.only(t); r.status != 400 || got.Error == nil || got.Error.Code != -32600 || !strings.Contains(got.Error.Message, c.want) {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	var turns int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 0 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestWrongParametersAreTold checks that the error for an invalid parameter has its name, in the
// terms of this server.
func TestWrongParametersAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	for _, c := range []struct {
		method, params string
		code           int
		want           string
	}{
		{"", `{}`, -32601, `Unknown method "" in the revision 2025-11-25. There are initialize, ping`},
		{"server/discover", `{}`, -32601, "Unknown method"},
		{"ping", deep, -32700, "nested deeper than 64 levels"},
		{"ping", `[]`, -32602, "params must be an object"},
		{"ping", `{"_meta":3}`, -32602, "params._meta must be an object"},
		{"initialize", `{}`, -32602, "params.protocolVersion must be a string"},
		{"initialize", `{"protocolVersion":5}`, -32602, "params.protocolVersion must be a string"},
		{"initialize", `{"protocolVersion":"2025-11-25","capabilities":{"roots":3},"clientInfo":{}}`, -32602,
			"params.capabilities.roots is not what initialize takes"},
		{"initialize", `{"protocolVersion":"2025-11-25","clientInfo":{"name":4}}`, -32602, "params.clientInfo.name is not"},
		{"tools/list", `{"cursor":"x"}`, -32602, "params.cursor leads nowhere"},
		{"tools/list", `{"cursor":{}}`, -32602, "params.cursor"},
		{"tools/call", `null`, -32602, "params.name is missing"},
		{"tools/call", `{"name":3}`, -32602, "params.name must be a string"},
		{"tools/call", `{"name":"list_skils"}`, -32602, `Unknown tool "list_skils". There are send_message, list_skills,`},
		{"tools/call", `{"name":"list_skills","arguments":5}`, -32602, "params.arguments must be an object"},
		{"tools/call", `{"name":"list_skills","arguments":[]}`, -32602, "params.arguments must be an object"},
		{"tools/call", `{"name":"list_skills","arguments":{"a":1,"a":2}}`, -32700, `The name "a" appears twice`},
		{"tools/call", `{"name":"list_skills","_meta":{"progressToken":[1]}}`, -32602,
			"params._meta.progressToken must be a string or an integer"},
		{"tools/call", `{"name":"list_skills","_meta":{"progressToken":{}}}`, -32602, "progressToken"},
		{"tools/call", `{"name":"list_skills","_meta":{"progressToken":1.5}}`, -32602, "progressToken"},
		{"tools/call", `{"name":"send_message","requestState":1}`, -32602, "params.requestState must be a string"},
		{"tools/call", `{"name":"send_message","requestState":"1","inputResponses":[]}`, -32602, "params.inputResponses must be an object"},
		{"tools/call", `{"name":"send_message","arguments":{"command":"x"},"inputResponses":{}}`, -32602,
			"params.requestState, which came with the question"},
	} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, c.method, c.params)
		r := s.post(t, s.key, body, "MCP-Protocol-Version", "2025-11-25")
		got := r.only(t)
		if got.Error == nil || got.Error.Code != c.code || !strings.Contains(got.Error.Message, c.want) ||
			(r.status == 200) != (c.code != -32700) {
			t.Errorf("%.100s: %d %s", body, r.status, r.body)
		}
	}
	// Requests that the newest revision rejects with an HTTP status, and requests without an id.
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","method":"tools/list"}`:               "tools/list is a request: it needs an id.",
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                  "accepts no responses",
		`{"jsonrpc":"2.0","id":1}`:                              "method is missing",
		`{"jsonrpc":"2.0","id":1,"method":null}`:                "method must be a string",
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:                `jsonrpc must be "2.0"`,
		`null`:                                                  "A message is an object",
		`{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":}`: "The message is not JSON",
	} {
		r := s.post(t, s.key, body)
		if got := r.only(t); r.status != 400 || got.Error == nil || !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

// TestHeadersAreHeldAgainstTheBody compares headers with the body in the newest revision, whose
// requests are self-contained.
func TestHeadersAreHeldAgainstTheBody(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const own, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	full := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "list_skills"}
	for _, c := range []struct {
		name, meta string
		header     []string
		status     int
		code       int
		want       string
	}{
		{"all well", own + "," + caps, full, 200, 0, ""},
		{"a name in Base64", own + "," + caps, append(full[:4:4], "Mcp-Name", "=?base64?bGlzdF9za2lsbHM=?="), 200, 0, ""},
		{"a wrong name in Base64", own + "," + caps, append(full[:4:4], "Mcp-Name", "=?base64?bGlzdA==?="), 400, -32020,
			`The header Mcp-Name is "list", and the body says "list_skills".`},
		{"no name", own + "," + caps, full[:4], 400, -32020, "The header Mcp-Name is missing"},
		{"no method", own + "," + caps, full[:2], 400, -32020, "The header Mcp-Method is missing"},
		{"no revision in the headers", own + "," + caps, full[2:], 400, -32020, "the header MCP-Protocol-Version is missing"},
		{"another one", own + "," + caps, append([]string{"MCP-Protocol-Version", "2025-11-25"}, full[2:]...), 400, -32020,
			`is "2025-11-25", and params._meta says "2026-07-28"`},
		{"no revision in the body", caps, full, 400, -32602, "params._meta must have io.modelcontextprotocol/protocolVersion"},
		{"a number", `"io.modelcontextprotocol/protocolVersion":5,` + caps, full, 400, -32602, "must be a string"},
		{"no capabilities", own, full, 400, -32602, "params._meta must have io.modelcontextprotocol/clientCapabilities"},
		{"strange capabilities", own + `,"io.modelcontextprotocol/clientCapabilities":3`, full, 400, -32602,
			"clientCapabilities in params._meta is not"},
		{"a strange client", own + "," + caps + `,"io.modelcontextprotocol/clientInfo":{"name":3}`, full, 400, -32602,
			"clientInfo in params._meta is not"},
	} {
		r := s.post(t, s.key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills","_meta":{`+c.meta+`}}}`, c.header...)
		got := r.only(t)
		if r.status != c.status || (got.Error != nil) != (c.code != 0) || got.Error != nil && (got.Error.Code != c.code ||
			!strings.Contains(got.Error.Message, c.want)) {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	r := s.post(t, s.key, ping, "MCP-Protocol-Version", "2031-01-01")
	if got := r.only(t); r.status != 400 || got.Error.Code != -32022 || string(got.ID) != `"p-1"` ||
		!strings.Contains(string(got.Error.Data), `"supported":["2026-07-28",`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}
