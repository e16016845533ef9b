package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/testing/wait"
)

// keyed sends a key with every request.
type keyed struct {
	key  string
	next http.RoundTripper
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return k.next.RoundTrip(r)
}

// TestMCPCallSurvivesItsServer kills a server with kill -9 in the middle of a call. The same call
// on another server returns the answer, and the message was sent once.
func TestMCPCallSurvivesItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "mcp", "--scope", "mcp")
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	call := func(s *server, began chan<- struct{}) (*mcp.CallToolResult, error) {
		opt := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if began != nil && strings.Contains(r.Params.Message, "> before") {
				close(began)
				began = nil
			}
		}}
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opt).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: keyed{key, transport}},
				MaxRetries: -1}, nil)
		if err != nil {
			return nil, err
		}
		defer cs.Close()
		params := &mcp.CallToolParams{Name: "send_message", Arguments: map[string]any{"command": "@say before\n@wait 1s\n@say after",
			"idempotency_key": "once"}}
		params.SetProgressToken(1)
		return cs.CallTool(t.Context(), params)
	}
	first := w.serve(t, nil)
	began, lost := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := call(first, began)
		lost <- err
	}()
	wait.Receive(t, "the beginning", began)
	first.kill()
	if err := wait.Receive(t, "the lost call", lost); err == nil {
		t.Error("the call was answered by a dead server")
	}
	res, err := call(w.serve(t, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(res.StructuredContent)
	var got struct {
		Success bool
		Output  string
	}
	if err := json.Unmarshal(text, &got); err != nil || !got.Success || got.Output != "beforeafter" {
		t.Errorf("%s, %v", text, err)
	}
	var turns int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 1 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestMCPClients runs the official clients in TypeScript against a server, with the handshake's
// revisions and the newest, and the protocol's own conformance suite if Node.js is new enough. Like
// the other client in TypeScript, it is never required.
func TestMCPClients(t *testing.T) {
	t.Parallel()
	const dir = "../../../compat/mcp"
	npm := install(t, dir)
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "mcp", "--scope", "mcp")
	read := w.parley(t, "keys", "create", "--workspace", "w", "--name", "read", "--scope", "mcp:read")
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	s := w.serve(t, nil)
	cmd := exec.Command(npm, "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key, "PARLEY_READ_KEY="+read)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "The clients have ended well.") {
		t.Errorf("npm test: %v", err)
	}
}
