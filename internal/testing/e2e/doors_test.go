package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tell sends a request as a client of some protocol does, and returns the whole response.
func (w *world) tell(t *testing.T, method, url, body string, header ...string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", method, url, res.StatusCode, text, err)
	}
	return string(text)
}

// TestOneTurnThroughEveryDoor kills the server of a turn that a chat started and that waits for an
// answer. On another server every protocol shows the same question; one of them answers it, and
// every other receives the same end.
func TestOneTurnThroughEveryDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "all", "--scope", "chat", "--scope", "sessions:read", "--scope",
		"mcp", "--scope", "a2a")
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	first := w.serve(t, nil)
	var begun struct {
		ID      string
		Session string `json:"session_id"`
		Choices []struct{ Message struct{ Content string } }
	}
	command, _ := json.Marshal("@say I save it.\n@call wiki_write {\"page\":\"trip\",\"content\":\"Trains first.\"}\n@say The end.")
	text := w.tell(t, "POST", first.url+"/openai/v1/chat/completions", `{"model":"w","messages":[{"role":"user","content":`+string(command)+
		`}]}`, "X-Session-Id", "trip")
	if err := json.Unmarshal([]byte(text), &begun); err != nil || !strings.Contains(begun.Choices[0].Message.Content, "Reply `allow ") {
		t.Fatalf("%s, %v", text, err)
	}
	turn := strings.TrimPrefix(begun.ID, "chatcmpl-")
	first.kill()

	s := w.serve(t, nil)
	base := s.url + "/api/v1/workspaces/w"
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: keyed{w.key, transport}},
			MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	tool := func(name string) string {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"session_id": begun.Session}})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(res.StructuredContent)
		return string(text)
	}
	task := func() string {
		return w.tell(t, "POST", s.url+"/a2a", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"`+turn+`"}}`, "A2A-Version", "1.0")
	}
	run := func() string {
		return w.tell(t, "POST", base+"/ag-ui", `{"threadId":"trip","runId":"look","messages":[],"tools":[],"context":[]}`)
	}
	own := func() string { return w.tell(t, "GET", base+"/approvals", "") }
	for door, shown := range map[string][2]string{
		"Chat Completions": {w.tell(t, "POST", s.url+"/v1/chat/completions",
			`{"model":"w","messages":[{"role":"user","content":"continue"}]}`, "X-Session-Id", "trip"), "Reply `allow "},
		"MCP":          {tool("list_pending"), `"tool":"wiki_write"`},
		"A2A":          {task(), `"state":"TASK_STATE_INPUT_REQUIRED"`},
		"the AI SDK":   {w.tell(t, "GET", base+"/ui/chat/trip/stream", ""), `"type":"tool-approval-request"`},
		"AG-UI":        {run(), `"type":"interrupt"`},
		"the HTTP API": {own(), `"status":"pending"`},
	} {
		if !strings.Contains(shown[0], shown[1]) {
			t.Errorf("%s does not show the question: %s", door, shown[0])
		}
	}
	allow := `{"message":{"messageId":"m","role":"ROLE_USER","taskId":"` + turn + `","parts":[{"data":{"decision":"allow"}}]}}`
	if done := w.tell(t, "POST", s.url+"/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+allow+`}`, "A2A-Version",
		"1.0"); !strings.Contains(done, "TASK_STATE_COMPLETED") {
		t.Errorf("%s", done)
	}
	for door, shown := range map[string][2]string{
		"MCP":          {tool("get_messages"), "The end."},
		"A2A":          {task(), "The end."},
		"the HTTP API": {w.tell(t, "GET", base+"/sessions/"+begun.Session+"/messages", ""), "The end."},
		"approvals":    {own(), `"status":"allowed"`},
	} {
		if !strings.Contains(shown[0], shown[1]) {
			t.Errorf("%s does not show the end: %s", door, shown[0])
		}
	}
	var turns int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 1 {
		t.Errorf("%d turns, %v", turns, err)
	}
}
