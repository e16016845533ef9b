package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestToolServersOfTheOfficialSDKs adds servers written with the official SDKs, and calls tools of
// both in one turn. A changed description disables its tool until it is accepted. Like the clients of
// these languages, the SDKs are never required.
func TestToolServersOfTheOfficialSDKs(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs Node.js and Python")
	const node, python = "../../../compat/mcp", "../../../compat/python"
	install(t, node)
	installPython(t, python, nil)
	urls := map[string]string{
		"node":   startToolServer(t, node, "node", "server.js"),
		"python": startToolServer(t, python, filepath.Join(".venv", "bin", "python"), "server.py"),
	}
	w := newWorld(t)
	w.env = []string{"PARLEY_EGRESS_ALLOW=" + pinOf(t, urls["node"]) + "," + pinOf(t, urls["python"])}
	s := w.serve(t, w.env)
	for name, url := range urls {
		w.parley(t, "tools", "add", name, "--mcp", url, "--workspace", "w")
		for _, reads := range []string{"find", "picture"} {
			w.parley(t, "tools", "label", name, reads, "read_only", "--workspace", "w")
		}
	}
	got := w.callTools(t, s,
		`@call node__find {"id":"7"} python__rename {"id":"7","name":"Grace"} python__find {"id":"7"} node__picture python__picture`)
	for i, want := range []string{`"{\"id\":\"7\",\"name\":\"Ada\"}"`, "renamed 1 times", `\"name\": \"Grace\"`,
		"[image, image/png: all of it is in /workspace/", "[image, image/png: all of it is in /workspace/"} {
		if !strings.Contains(got[i], `"ok":true`) || !strings.Contains(got[i], want) {
			t.Errorf("result %d: %s, want %s", i+1, got[i], want)
		}
	}
	for name := range urls {
		got := w.callTools(t, s, `@call `+name+`__describe {"text":"Now another one."}`)
		if !strings.Contains(got[0], "described") {
			t.Errorf("%s: %s", name, got)
		}
		if out := w.parley(t, "tools", "refresh", name, "--workspace", "w"); !strings.Contains(out, "Now another one.") ||
			!strings.Contains(out, "- Find a customer by id.") {
			t.Errorf("%s: refresh printed %s", name, out)
		}
		if got := w.callTools(t, s, `@call `+name+`__find {"id":"7"}`); strings.Contains(got[0], `"ok":true`) {
			t.Errorf("%s: a changed tool ran: %s", name, got)
		}
		w.parley(t, "tools", "accept", name, "find", "--workspace", "w")
		if got := w.callTools(t, s, `@call `+name+`__find {"id":"7"}`); !strings.Contains(got[0], `"ok":true`) {
			t.Errorf("%s: the accepted tool: %s", name, got)
		}
	}
	var asked int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM approvals WHERE status = 'allowed'`).Scan(&asked); err != nil || asked != 3 {
		t.Errorf("%d calls were approved, want one rename and two describe; %v", asked, err)
	}
}

// TestToolServersPage runs the server of docs/guides/tool-servers.md, and the commands that add it.
func TestToolServersPage(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs Node.js")
	page, err := os.ReadFile("../../../docs/guides/tool-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	const dir, documented = "../../../compat/mcp", "http://localhost:9101/mcp"
	install(t, dir)
	var code, commands string
	for _, e := range example.FindAllStringSubmatch(string(page), -1) {
		switch {
		case e[1] == "js":
			code = e[2]
		case strings.Contains(e[2], "tools add customers"):
			commands = e[2]
		}
	}
	url := startToolServer(t, dir, "env", "PORT=0", "node", "--input-type=module", "-e", code)
	w := newWorld(t)
	w.env = []string{"PARLEY_EGRESS_ALLOW=" + pinOf(t, url)}
	s := w.serve(t, w.env)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "admin", "--scope", "all")
	cmd := exec.Command("bash", "-ec", `parley() { "$PARLEY" "$@"; }`+"\n"+strings.ReplaceAll(commands, documented, url))
	cmd.Env = append(environ(), "PARLEY="+binary, "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key, "PARLEY_WORKSPACE=w")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Ada") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestKilledInACallOfAToolServer kills a server with kill -9 while three turns wait for the result of a
// call: of a tool that reads, of one that changes something, and of one that may be repeated.
func TestKilledInACallOfAToolServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type call struct{ tool, id string }
	calls, leave := make(chan call, 10), make(chan struct{})
	tools := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for _, name := range []string{"find", "book", "put"} {
		mcp.AddTool(tools, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{IdempotentHint: name == "put"}},
			func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				id, _ := r.Params.Meta["parley/tool-use-id"].(string)
				calls <- call{name, id}
				select {
				case <-leave:
				case <-ctx.Done():
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
			})
	}
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	release := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(func() {
		release()
		for session := range tools.Sessions() { // of the killed server
			_ = session.Close()
		}
		h.Close()
	})
	address := strings.Replace(h.URL, "127.0.0.1", "localhost", 1) + "/mcp"
	w.env = []string{"PARLEY_EGRESS_ALLOW=" + pinOf(t, address)}
	w.parley(t, "tools", "add", "shop", "--mcp", address, "--workspace", "w")
	w.parley(t, "tools", "label", "shop", "find", "read_only", "--workspace", "w")
	first := w.serve(t, w.env)
	sessions := make(map[string]string)
	for _, name := range []string{"find", "book", "put"} {
		sessions[name] = w.startAllowed(t, first, "@call shop__"+name+"\n@say Done.")
	}
	ids := make(map[string]string)
	for range sessions {
		c := wait.Receive(t, "a call", calls)
		ids[c.tool] = c.id
	}
	first.kill()
	release()
	second := w.serve(t, w.env)
	for name, session := range sessions {
		frames, err := w.follow(t.Context(), session, "", nil, second)
		if err != nil {
			t.Fatal(err)
		}
		var uses, results []string
		for _, f := range frames {
			switch f.Event {
			case "tool_use":
				uses = append(uses, f.Data)
			case "tool_result":
				results = append(results, f.Data)
			}
		}
		want := `"ok":true,"output":"` + name + `"`
		if name == "book" {
			want = `"ok":false,"output":"interrupted, outcome unknown"`
		}
		if len(uses) != 1 || len(results) != 1 || !strings.Contains(results[0], want) || !strings.Contains(uses[0], ids[name]) ||
			text(frames) != "Done." {
			t.Errorf("%s: %v %v, text %q", name, uses, results, text(frames))
		}
	}
	again := make(map[string]string)
	for len(calls) > 0 {
		c := <-calls
		again[c.tool] += c.id
	}
	delete(ids, "book")
	if !maps.Equal(again, ids) {
		t.Errorf("repeated %v, want %v", again, ids)
	}
}

// startToolServer starts a program that prints its address and serves until the test ends.
func startToolServer(t *testing.T, dir string, command ...string) (url string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, gone := make(chan string), make(chan struct{})
	go func() {
		defer close(gone)
		for r := bufio.NewScanner(out); r.Scan(); {
			lines <- r.Text()
		}
		close(lines)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		wait.Receive(t, "the end of "+command[0], gone)
	})
	return wait.Receive(t, "the address of "+command[0], lines)
}

// pinOf returns the rule of egress for a server on localhost.
func pinOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + u.Host + "=127.0.0.1:" + u.Port()
}

// callTools lets a turn call tools, allows what needs an approval, and returns the results.
func (w *world) callTools(t *testing.T, s *server, script string) (results []string) {
	t.Helper()
	session, _ := w.start(t, s, script+"\n@say Done.")
	frames, err := w.follow(t.Context(), session, "", func(f frame) {
		switch f.Event {
		case "tool_result":
			results = append(results, f.Data)
		case "input_required":
			w.allow(t, s, f)
		}
	}, s)
	if err != nil || !strings.Contains(text(frames), "Done.") {
		t.Fatalf("%v: %v", err, frames)
	}
	return results
}

// startAllowed starts a turn that calls one tool, and allows the call if that needs an approval. It
// returns when the call has begun.
func (w *world) startAllowed(t *testing.T, s *server, script string) (session string) {
	t.Helper()
	session, _ = w.start(t, s, script)
	err := w.stream(t.Context(), w.events(s, session, ""), func(f frame) bool {
		if f.Event == "input_required" {
			w.allow(t, s, f)
		}
		return f.Event != "tool_use"
	})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// allow answers the question of a frame.
func (w *world) allow(t *testing.T, s *server, f frame) {
	t.Helper()
	var q question
	if err := json.Unmarshal([]byte(f.Data), &q); err != nil {
		t.Fatalf("%s: %v", f.Data, err)
	}
	if status, got := w.decide(t, s, q, "allow"); status != 200 {
		t.Errorf("allow: %d %+v", status, got)
	}
}
