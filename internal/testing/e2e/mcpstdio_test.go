package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/testing/wait"
)

// TestMCPOnStdio lets the official client start `parley mcp` as a local server: messages, progress
// and answers pass; a call that the client cancels is canceled on the server; and a server that
// dies is reported, after which the next one at the same address is used.
func TestMCPOnStdio(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "mcp", "--scope", "mcp")
	s := w.serve(t, nil)
	progress := make(chan string, 100)
	cmd := exec.Command(binary, "mcp", "--url", s.url)
	cmd.Env = append(environ(), "PARLEY_API_KEY="+key)
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Message },
	}).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context, command, key string) (string, error) {
		params := &mcp.CallToolParams{Name: "send_message", Arguments: map[string]any{"command": command, "idempotency_key": key}}
		params.SetProgressToken(key)
		res, err := cs.CallTool(ctx, params)
		if err != nil {
			return "", err
		}
		text, _ := json.Marshal(res.StructuredContent)
		return string(text), nil
	}
	until := func(text string) {
		t.Helper()
		for !strings.Contains(wait.Receive(t, text, progress), text) {
		}
	}
	if got, err := send(t.Context(), "@say Grüße 👩‍🚀", "one"); err != nil || !strings.Contains(got, `"output":"Grüße 👩‍🚀"`) {
		t.Errorf("%s, %v", got, err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := send(ctx, "@say before\n@wait 300ms\n@say after", "two")
		given <- err
	}()
	until("before")
	giveUp()
	if err := wait.Receive(t, "the outcome", given); err == nil {
		t.Error("a canceled call got a response")
	}
	if got, err := send(t.Context(), "@say before\n@wait 300ms\n@say after", "two"); err != nil || !strings.Contains(got, "beforeafter") {
		t.Errorf("%s, %v", got, err)
	}
	go func() {
		_, err := send(t.Context(), "@say here\n@wait 1s\n@say there", "three")
		given <- err
	}()
	until("here")
	s.kill()
	if err := wait.Receive(t, "the outcome", given); err == nil || !strings.Contains(err.Error(), "can be sent again") {
		t.Errorf("after the server died: %v", err)
	}
	w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
	if got, err := send(t.Context(), "@say here\n@wait 1s\n@say there", "three"); err != nil || !strings.Contains(got, "herethere") {
		t.Errorf("%s, %v", got, err)
	}
	if err := cs.Close(); err != nil {
		t.Errorf("it did not end with its stdin: %v", err)
	}
	var turns int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 3 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestMCPOnStdioPassesEverything checks that messages pass unchanged, that an HTTP error of the
// server becomes a protocol error, and that every request is answered before the command ends.
func TestMCPOnStdioPassesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "mcp", "--scope", "mcp")
	s := w.serve(t, nil)
	pass := func(key string, lines ...string) []string {
		t.Helper()
		cmd := exec.Command(binary, "mcp", "--url", s.url)
		cmd.Env = append(environ(), "PARLEY_API_KEY="+key)
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(got)
		return got
	}
	got := pass(key, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"é","method":"none"}`, `{"jsonrpc":`,
		`[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","id":"b2","method":"ping"}]`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wiki_read","arguments":{"page":"é"},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	for i, want := range []string{`"id":"é"`, `"id":1,`, `"id":9007199254740993,"result":{}`, `"code":-32700`, `"id":"b1","result":{}`,
		`"id":"b2","result":{}`} {
		if len(got) != 6 || !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%d: no %s in %q", i, want, got)
		}
	}
	long := strings.Repeat("x", 5<<20)
	got = pass(key, `{"jsonrpc":"2.0","id":7,"method":"`+long+`"}`, `{"jsonrpc":"2.0","id":8,"method":"`+long[:1<<19]+`"}`,
		`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if len(got) != 3 || !strings.Contains(got[0], `"id":null`) || !strings.Contains(got[0], "larger than") ||
		!strings.Contains(got[1], `"id":8,"error":{"code":-32601`) || !strings.Contains(got[2], `"id":9,"result":{}`) {
		t.Errorf("%.300q", got)
	}
	if got := pass("prl_nonsense", `{"jsonrpc":"2.0","id":"a","method":"ping"}`); len(got) != 1 || !strings.Contains(got[0], `"id":"a"`) ||
		!strings.Contains(got[0], `"code":-32000`) || !strings.Contains(got[0], "API key") {
		t.Errorf("%q", got)
	}
}

// TestMCPOnStdioOfASocket checks that stdin may be a socket, which Node.js passes to the programs
// that it starts.
func TestMCPOnStdioOfASocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "mcp", "--scope", "mcp")
	s := w.serve(t, nil)
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	cmd := exec.Command(binary, "mcp", "--url", s.url+"/mcp") // the form of the address that other programs accept
	cmd.Env = append(environ(), "PARLEY_API_KEY="+key)
	cmd.Stdin = theirs
	if _, err := ours.WriteString(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	theirs.Close()
	if err != nil || !strings.Contains(string(out), `"result":{}`) {
		t.Errorf("%s, %v", out, err)
	}
}
