package e2e_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// drain is a turn whose first model call, on the first of two servers, shows text and then waits. A
// reader is connected to that server.
type drain struct {
	*world
	script        *modeltest.Script
	resume        chan struct{} // closed: the model call continues
	first, second *server
	session       string
	read          chan []frame // receives the reader's frames when its connection has ended
}

func newDrain(t *testing.T, env ...string) *drain {
	t.Helper()
	slow.Test(t, "runs processes")
	d := &drain{world: newWorld(t), resume: make(chan struct{}), read: make(chan []frame, 1)}
	usage := &model.Usage{InputTokens: 30, OutputTokens: 4}
	d.script = &modeltest.Script{Replies: []modeltest.Reply{
		{Text: []string{"One ", "moment. "}, Calls: []modeltest.Call{{ID: "c1", Tool: "grep", Input: `{"pattern":"x"}`}}, Usage: usage,
			Hold: 2, Resume: d.resume},
		{Text: []string{"Ready."}, Usage: usage},
	}}
	provider := modeltest.OpenAI(d.script)
	t.Cleanup(func() {
		provider.CloseClientConnections()
		provider.Close()
	})
	env = append(env, "OPENAI_BASE_URL="+provider.URL+"/v1")
	d.first = d.serve(t, env)
	d.session, _ = d.start(t, d.first, "look x up")

	shown := make(chan struct{}, 1)
	go func() {
		var frames []frame
		err := d.stream(t.Context(), d.events(d.first, d.session, ""), func(f frame) bool {
			if f.Event == "text" && len(frames) == 0 {
				shown <- struct{}{}
			}
			if f.Event != "open" {
				frames = append(frames, f)
			}
			return true
		})
		if err == nil {
			t.Error("the stopping server ended the stream like a complete one")
		}
		d.read <- frames
	}()
	wait.Receive(t, "text of the model call", shown)
	d.second = d.serve(t, env)
	return d
}

// stop sends SIGTERM to the first server and waits until it reports that it is stopping.
func (d *drain) stop(t *testing.T) {
	t.Helper()
	d.first.signal(syscall.SIGTERM)
	wait.For(t, "the server reports that it is stopping", func() bool {
		req, _ := http.NewRequest(http.MethodGet, d.first.url+"/readyz", nil)
		res, body := d.do(t, req)
		return res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), "it is stopping")
	})
}

// settle waits for the end of the first server, reads the rest of the turn from the second one, and
// compares all frames with the log. It returns the internal course of the turn.
func (d *drain) settle(t *testing.T) (course string) {
	t.Helper()
	wait.Receive(t, "the end of the first server", d.first.gone)
	if code := d.first.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the first server exited with %d", code)
	}
	frames := wait.Receive(t, "the end of the first stream", d.read)
	rest, err := d.follow(t.Context(), d.session, frames[len(frames)-1].ID, nil, d.second)
	if err != nil {
		t.Fatal(err)
	}
	frames = append(frames, rest...)
	if diff := cmp.Diff(d.table(t, d.session), frames); diff != "" {
		t.Errorf("the reader's rows differ from the table (-table +reader):\n%s", diff)
	}
	if n := d.nodes(t, d.session); n != 2 {
		t.Errorf("the turn ran on %d servers", n)
	}
	err = d.pool.QueryRow(t.Context(), `SELECT string_agg(kind, ' ' ORDER BY seq) FROM events
		WHERE session_id = $1 AND kind IN ('started', 'reply', 'tool_use', 'tool_result', 'done')`, d.session).Scan(&course)
	if err != nil {
		t.Fatal(err)
	}
	return course
}

// TestStoppingServerFinishesTheStep sends SIGTERM in the middle of a model call. The call ends on
// the same server, and its tools run on the other one. Meanwhile the stopping server still accepts
// a message, which the other one answers.
func TestStoppingServerFinishesTheStep(t *testing.T) {
	t.Parallel()
	d := newDrain(t)
	d.stop(t)
	res, body := d.do(t, d.messages(d.first, map[string]any{"command": "and this", "stream": false}))
	if res.StatusCode != http.StatusOK || !res.Close || !strings.Contains(string(body), "Ready.") {
		t.Errorf("a message to the stopping server: %s, closes its connection: %v, %s", res.Status, res.Close, body)
	}
	close(d.resume)
	if got, want := d.settle(t), "started reply started tool_use tool_result reply done"; got != want {
		t.Errorf("the turn ran as %q, want %q", got, want)
	}
	if n := len(d.script.Requests()); n != 3 { // with the other message's
		t.Errorf("the model was called %d times, want 3", n)
	}
}

// TestSecondSignalHandsOverAtOnce sends SIGTERM twice in the middle of a model call.
func TestSecondSignalHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	d := newDrain(t, "PARLEY_DRAIN=1h")
	d.stop(t)
	d.first.signal(syscall.SIGTERM)
	wait.Receive(t, "the end of the model call", d.script.Gone())
	if got, want := d.settle(t), "started started reply done"; got != want {
		t.Errorf("the turn ran as %q, want %q", got, want)
	}
}

// TestDrainHasALimit stops a server whose model call lasts longer than the drain.
func TestDrainHasALimit(t *testing.T) {
	t.Parallel()
	d := newDrain(t, "PARLEY_DRAIN=100ms")
	d.first.signal(syscall.SIGTERM)
	wait.Receive(t, "the end of the model call", d.script.Gone())
	if got, want := d.settle(t), "started started reply done"; got != want {
		t.Errorf("the turn ran as %q, want %q", got, want)
	}
}
