package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/sse"
)

// a2aFrame has the members of an A2A 1.0 frame that are needed to assemble an answer.
type a2aFrame struct {
	Result struct {
		Task           *struct{ ID string }
		StatusUpdate   *struct{ Status struct{ State string } }
		ArtifactUpdate *struct {
			Artifact struct{ Parts []struct{ Text string } }
			Append   bool
		}
	}
}

// TestA2AStreamSurvivesItsServer kills a server with kill -9 while it streams a task. With the id
// of the last frame, another server streams the rest: nothing twice, nothing missing.
func TestA2AStreamSurvivesItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "a2a", "--scope", "a2a")
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	open := func(s *server, method, params, cursor string) (*sse.Reader, func()) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/a2a",
			strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + key, "Content-Type": "application/json",
			"A2A-Version": "1.0", "Last-Event-ID": cursor} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return sse.NewReader(res.Body), func() { res.Body.Close() }
	}
	first, second := w.serve(t, nil), (*server)(nil)
	var answer bytes.Buffer
	var task, state string
	read := func(r *sse.Reader, until int) error {
		for {
			f, err := r.Next()
			if err != nil {
				return err
			}
			var got a2aFrame
			if err := json.Unmarshal(f.Data, &got); err != nil {
				t.Fatal(err)
			}
			if got.Result.Task != nil {
				task = got.Result.Task.ID
			}
			if u := got.Result.StatusUpdate; u != nil {
				state = u.Status.State
			}
			if u := got.Result.ArtifactUpdate; u != nil {
				answer.WriteString(u.Artifact.Parts[0].Text)
			}
			if answer.Len() >= until {
				return nil
			}
		}
	}
	r, leave := open(first, "SendStreamingMessage",
		`{"message":{"messageId":"once","role":"ROLE_USER","parts":[{"text":"@text 400 deltas of 12 bytes at 200/s"}]}}`, "")
	if err := read(r, 12*100); err != nil {
		t.Fatal(err)
	}
	second = w.serve(t, nil)
	first.kill()
	_ = read(r, 12*1000) // already sent
	leave()
	r, leave = open(second, "SubscribeToTask", fmt.Sprintf(`{"id":%q}`, task), r.LastEventID())
	defer leave()
	_ = read(r, 12*1000)
	if state != "TASK_STATE_COMPLETED" {
		t.Errorf("the task ends as %s", state)
	}
	var want string
	if err := w.pool.QueryRow(t.Context(), `SELECT content FROM messages WHERE role = 'assistant' AND turn_id = $1`,
		task).Scan(&want); err != nil || len(want) != 12*400 || answer.String() != want {
		t.Errorf("%d bytes received, %d stored; they differ at %d (%v)", answer.Len(), len(want), differ(answer.String(), want), err)
	}
}

// TestA2AClients runs the official client in JavaScript against a server, in both versions, which
// it kills in the middle of a stream. Like the other clients from npm, it is never required.
func TestA2AClients(t *testing.T) {
	t.Parallel()
	const dir = "../../../compat/a2a"
	npm := install(t, dir)
	port := freePort(t)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "a2a", "--scope", "a2a", "--scope", "wiki:write")
	cmd := exec.Command(npm, "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PARLEY_API_KEY="+key, "HOOK_PORT="+port)
	w.endure(t, cmd, []string{"PARLEY_EGRESS_ALLOW=http://hook.example:" + port + "=127.0.0.1:" + port}, 2)
}
