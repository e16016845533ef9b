package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server"
	mcpserver "github.com/parley-server/parley/internal/server/mcp"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestProgressIsToldInOrder checks that progress reports the accepted message, the growing text and
// the tools in order, and that nothing follows the result.
func TestProgressIsToldInOrder(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var mu sync.Mutex
	var told []*mcp.ProgressNotificationParams
	all := make(chan struct{})
	c := s.connect(t, s.key, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *mcp.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r.Params)
		if r.Params.Message == "The agent waits for a person." { // the client delivers them concurrently with the result
			close(all)
		}
	}})
	params := &mcp.CallToolParams{Name: "send_message",
		Arguments: map[string]any{"command": "@say One two three.\n@call wiki_read {\"page\":\"x\"} read {}\n" + asking}}
	params.SetProgressToken("token-1")
	s.Gate.Leave <- struct{}{}
	got := c.tell(c.CallTool(t.Context(), params))("send_message")
	wait.Receive(t, "all goroutines", all)
	mu.Lock()
	defer mu.Unlock()
	var order []string
	last := 0.0
	for _, p := range told {
		if p.ProgressToken != "token-1" || p.Progress <= last || p.Message == "" {
			t.Errorf("%+v after %v", p, last)
		}
		last = p.Progress
		if n := len(order); n > 0 && strings.HasPrefix(p.Message, order[n-1]) {
			order[n-1] = p.Message // a longer version of the same text
		} else {
			order = append(order, p.Message)
		}
	}
	want := []string{"The agent has the message. [session_id: " + got.SessionID + "]", "The agent says:\n> One two three.",
		"The agent uses a tool:\n> wiki_read: read wiki page x", "The tool has failed:\n> wiki_read",
		"The agent uses a tool:\n> read: read {}", "The tool is done:\n> read",
		"The agent says:\n> One two three.\n>\n> I would touch it.", "The agent waits for a person."}
	if !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	if got.Input == nil {
		t.Errorf("%s", got.raw)
	}
}

// TestAQuietCallIsKeptAlive checks that a quiet call gets one-line comments, with and without a
// progress token.
func TestAQuietCallIsKeptAlive(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Keepalive = 5 * time.Millisecond })
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"command":"@call read ` +
		`{}\n@say Now."}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+mcpserver.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := s.checked.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if h := res.Header; h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store, no-transform" ||
		h.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", h)
	}
	lines := bufio.NewScanner(res.Body)
	for pings := 0; lines.Scan(); {
		switch line := lines.Text(); {
		case line == ": ping":
			if pings++; pings == 3 {
				s.Gate.Leave <- struct{}{}
			}
		case strings.HasPrefix(line, "data: "):
			if pings < 3 || !strings.Contains(line, "Now.") {
				t.Errorf("after %d pings: %s", pings, line)
			}
			return
		}
	}
	t.Fatal("no response arrived")
}

// TestQuietCallsRepeatTheirProgress checks that clients with a progress token get repeated progress
// in place of comments.
func TestQuietCallsRepeatTheirProgress(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Keepalive = 5 * time.Millisecond })
	heard := make(chan *mcp.ProgressNotificationParams, 1000)
	c := s.connect(t, s.key, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *mcp.ProgressNotificationClientRequest) {
		heard <- r.Params
	}})
	c.schema("send_message")
	params := &mcp.CallToolParams{Name: "send_message", Arguments: map[string]any{"command": "@call read {}\n@say Now."}}
	params.SetProgressToken("t")
	done := make(chan told)
	go func() { done <- c.tell(c.CallTool(t.Context(), params))("send_message") }()
	last := 0.0
	for n := 0; n < 3; {
		p := wait.Receive(t, "a request", heard)
		if p.Progress <= last || p.ProgressToken != "t" || p.Message == "" {
			t.Errorf("%+v after %v", p, last)
		}
		if last = p.Progress; p.Message == "The agent uses a tool:\n> read: read {}" {
			n++
		}
	}
	s.Gate.Leave <- struct{}{}
	if got := wait.Receive(t, "the end", done); !got.Success {
		t.Errorf("%s", got.raw)
	}
}

// TestADecisionTellsWhatComesBehindIt checks that the progress of decide_approval has only the
// events after the question.
func TestADecisionTellsWhatComesBehindIt(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	got := s.connect(t, s.key, nil).call("send_message", map[string]any{"command": asking})
	r := s.post(t, s.key, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"decide_approval",`+
		`"arguments":{"approval_id":%q,"decision":"allow","wait":true},"_meta":{"progressToken":1}}}`, got.Input.ApprovalID))
	progress, _, _ := strings.Cut(r.body, `"id":1`)
	if !strings.Contains(progress, `"message":"The tool is done:\n> touch"`) || strings.Contains(progress, "I would touch it.") ||
		strings.Contains(progress, "waits for a person") {
		t.Errorf("%s", r.body)
	}
}

// TestFramesAreOneLine checks that a frame is one line also for clients whose language treats other
// characters as line endings.
func TestFramesAreOneLine(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.post(t, s.key, `{"jsonrpc":"2.0","id":"\u0085\u2028","method":"tools/call","params":{"name":"send_message",`+
		`"arguments":{"command":"@say one\u0085two\u2028three"},"_meta":{"progressToken":"\u0085"}}}`)
	list := r.responses(t)
	end := list[len(list)-1]
	if len(list) < 2 || strings.ContainsAny(r.body, "\u0085\u2028") || string(end.ID) != `"\u0085\u2028"` ||
		!strings.Contains(string(end.Result), `one\u0085two\u2028three`) {
		t.Errorf("%q", r.body)
	}
}

// TestLimitsAreThoseOfTheKey checks that calls over a limit are rejected before the protocol layer,
// and messages and waiting calls in their results.
func TestLimitsAreThoseOfTheKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	limits := func(messages, calls, streams int32) string {
		t.Helper()
		c := workspace.Change{MessagesPerMinute: new(int(messages)), CallsPerMinute: new(int(calls)), OpenStreams: new(int(streams))}
		if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, c); err != nil {
			t.Fatal(err)
		}
		return s.Issue(t, s.Workspace, apikey.MCP)
	}
	key := limits(1, 100, 1)
	c := s.connect(t, key, nil)
	var wg sync.WaitGroup
	wg.Go(func() { c.call("send_message", map[string]any{"command": held}) })
	s.Gate.Await(t)
	// The quota is checked before the arguments, and the error is a valid result.
	if got := c.call("send_message", map[string]any{"command": 1}); !got.failed || got.Fault.Code != "RATE_LIMITED" ||
		got.Fault.RetryAfter < 1 ||
		!strings.Contains(got.text, "Wait 60 s.") && !strings.Contains(got.text, "Wait 5") || strings.Contains(got.text, "Retry-After") {
		t.Errorf("%s", got.raw)
	}
	s.Gate.Leave <- struct{}{}
	wait.Until(t, "all goroutines", wg.Wait)

	c = s.connect(t, limits(100, 100, 1), nil)
	wg.Go(func() { c.call("send_message", map[string]any{"command": held}) })
	s.Gate.Await(t)
	if got := c.call("send_message", map[string]any{"command": "x"}); !got.failed || got.Fault.Code != "CONCURRENCY_LIMIT" {
		t.Errorf("%s", got.raw)
	}
	s.Gate.Leave <- struct{}{}
	wait.Until(t, "all goroutines", wg.Wait)

	key = limits(100, 2, 1)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills"}}`
	three := "[" + call + "," + strings.Replace(call, "1", "2", 1) + "," + strings.Replace(call, "1", "3", 1) + "]"
	if r := s.post(t, key, three); r.status != 429 || !strings.Contains(r.body, `"code":"RATE_LIMITED"`) ||
		r.header.Get("RateLimit-Policy") != `"calls";q=2;w=60` {
		t.Errorf("three messages with a limit of two: %d %s %v", r.status, r.body, r.header)
	}
	if r := s.post(t, key, ping); r.status != 429 || !strings.Contains(r.body, `"code":"RATE_LIMITED"`) || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestAChangedLimitIsTheSameAtEveryDoor checks that a key that has used up its quota on one
// protocol gets the current size of the quota from every other one, even where they cached another
// limit.
func TestAChangedLimitIsTheSameAtEveryDoor(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Issue(t, s.Workspace, apikey.MCP, apikey.SessionsRead)
	rest := func() string {
		return s.do(t, "GET", "/api/v1/workspaces/"+s.Workspace.Slug+"/sessions", key, "").header.Get("RateLimit-Policy")
	}
	const small = `"calls";q=2;w=60`
	if got := rest(); got == small {
		t.Fatal(got)
	}
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{CallsPerMinute: new(2)}); err != nil {
		t.Fatal(err)
	}
	for s.post(t, key, ping).status != 429 {
	}
	if got := rest(); got != small {
		t.Error(got)
	}
}

// TestARevokedKeyLosesItsCalls checks that calls of a revoked key end within a second and that the
// turn continues.
func TestARevokedKeyLosesItsCalls(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	grant := apikey.Grant{Workspace: s.Workspace.ID, Name: "short", Scopes: apikey.Scopes{apikey.MCP}}
	key, text, err := s.Keys.Create(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	own, c := s.connect(t, s.key, nil), s.connect(t, text, nil)
	own.schema("send_message")
	c.outputs = own.outputs
	done := make(chan told)
	go func() { done <- c.call("send_message", map[string]any{"command": held}) }()
	s.Gate.Await(t)
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if got := wait.Receive(t, "the end", done); !got.failed || got.Fault == nil || got.Fault.Code != "INVALID_API_KEY" {
		t.Errorf("%s", got.raw)
	}
	if r := s.post(t, text, ping); r.status != 401 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if list := own.call("list_sessions", nil); list.Data[0].Status != "thinking" {
		t.Errorf("%s", list.raw)
	}
	s.Gate.Leave <- struct{}{}
}

// TestAReaderThatTakesNothingIsLetGo checks that the call of a client that does not read ends and
// releases its resources, while the turn continues.
func TestAReaderThatTakesNothingIsLetGo(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.WriteTimeout = 100 * time.Millisecond })
	c := workspace.Change{OpenStreams: new(1)}
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, c); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		s.protocol.ServeHTTP(w, r)
	}))
	srv.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		_ = conn.(*net.TCPConn).SetWriteBuffer(4096)
		return ctx
	}
	srv.Start()
	defer srv.Close()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { // the first window is already small
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := dialer.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	command := strings.Repeat("@say "+strings.Repeat("x", 1000)+"\n@call wiki_read {\"page\":\"x\"}\n", 40) + "@call read {}\n@say The end."
	body := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"command":%q,"caller_id":"deaf"},`+
			`"_meta":{"progressToken":1}}}`, command)
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", s.key, len(body), body)
	s.Gate.Await(t) // the turn has reached its last step
	wait.Receive(t, "the end of the connection", gone)
	own := s.connect(t, s.key, nil)
	if got := own.call("send_message", map[string]any{"command": "@say There is a place."}); !got.Success {
		t.Errorf("%s", got.raw)
	}
	s.Gate.Leave <- struct{}{}
	after := own.call("send_message", map[string]any{"command": "@say After it.", "caller_id": "deaf", "multitask_strategy": "enqueue"})
	got := own.call("get_messages", map[string]any{"session_id": after.SessionID})
	for _, m := range got.Data {
		if m.Role == "assistant" && m.Content != nil && strings.HasSuffix(*m.Content, "The end.") {
			return
		}
	}
	t.Errorf("the turn has failed: %s", got.raw)
}

// TestAStoppingServiceSaysWhereToGoOn checks that a waiting call on a server that stops gets an
// error that its message was accepted.
func TestAStoppingServiceSaysWhereToGoOn(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"": "Do not send it again", "k": "Sent again with the same idempotency_key",
		"decide": "The decision was taken"} {
		s := start(t, nil)
		c := s.connect(t, s.key, nil)
		c.schema("send_message")
		done := make(chan told)
		tool, args := "send_message", map[string]any{"command": held}
		switch key {
		case "k":
			args["idempotency_key"] = key
		case "decide":
			got := c.call(tool, map[string]any{"command": "@call touch {}\n" + held})
			tool, args = "decide_approval", map[string]any{"approval_id": got.Input.ApprovalID, "decision": "allow", "wait": true}
		}
		go func() { done <- c.call(tool, args) }()
		s.Gate.Await(t)
		s.Halt()
		got := wait.Receive(t, "the end", done)
		if !got.failed || got.Fault == nil || got.Fault.Code != "UNAVAILABLE" || got.Fault.Turn == nil || got.Fault.Turn.TurnID == "" ||
			!strings.Contains(got.text, want) {
			t.Errorf("%s", got.raw)
		}
		s.Gate.Leave <- struct{}{}
	}
}

// FuzzRequest checks that the response to any request is JSON-RPC or a refusal, and never an
// internal error.
func FuzzRequest(f *testing.F) {
	s := start(f, nil)
	for _, seed := range []string{
		ping, `[` + ping + `]`, `{}`, `[[]]`, `null`, `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":-0,"method":"tools/list","params":[]}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sessions","arguments":{"limit":1e999}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_session","arguments":{"session_id":"\ud800"},` +
			`"_meta":{"progressToken":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wiki_read","arguments":{"page":"\u0000"},` +
			`"inputResponses":{"x":3},"requestState":1}}`,
	} {
		f.Add(seed, "")
		f.Add(seed, "2025-11-25")
		f.Add(seed, "2026-07-28")
	}
	f.Fuzz(func(t *testing.T, body, revision string) {
		if strings.ContainsFunc(revision, func(r rune) bool { return r < ' ' || r > '~' }) {
			return
		}
		r := s.post(t, s.key, body, "MCP-Protocol-Version", revision)
		if r.status >= 500 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if r.status == http.StatusAccepted && r.body == "" {
			return
		}
		text := r.body
		if strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
			_, text, _ = strings.Cut(text, "data: ")
			text, _, _ = strings.Cut(text, "\n")
		}
		if text != "" && !json.Valid([]byte(text)) {
			t.Fatalf("%d %s", r.status, r.body)
		}
	})
}
