package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// TestPauseStopsAgents pauses a workspace, and then the server, while a turn runs and another is
// queued: the running one ends, the queued one runs after the resume, and messages in between are
// rejected, also by a replica that runs no turns.
func TestPauseStopsAgents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	front := s.replica(t, func(c *turn.Config) { c.Workers = 0 })
	unpaused := s.Workspace // as a request knows it for some time after the pause
	switches := map[string][2]func() error{
		"workspace": {
			func() error { _, err := s.Workspaces.Pause(t.Context(), s.Workspace.ID, "test"); return err },
			func() error { _, err := s.Workspaces.Resume(t.Context(), s.Workspace.ID); return err },
		},
		"server": {
			func() error { _, err := s.Workspaces.PauseServer(t.Context(), "test"); return err },
			func() error { _, err := s.Workspaces.ResumeServer(t.Context()); return err },
		},
	}
	for name, turnSwitch := range switches {
		st := s.say(t, held)
		st.until("tool_use")
		s.Gate.Await(t)
		if err := turnSwitch[0](); err != nil {
			t.Fatal(err)
		}
		end := wait.Result(t, "the end of the running turn", st.rest)
		if got := names(end); got != "tool_result usage error done" || !strings.Contains(end[2].data, `"code":"agents_stopped"`) {
			t.Errorf("%s: the running turn ended with %s", name, got)
		}
		// A claim reads the row, whatever the process that stored the message knew.
		queued := uuid.Must(uuid.NewV7())
		err := s.Sessions.Open(t.Context(), session.Ref{Workspace: unpaused.ID}, func(tx *session.Tx) error {
			_, _, err := tx.Begin(t.Context(), session.NewTurn{ID: queued, Message: event.Message{Content: "@say Later."},
				MaxResponseSeconds: 60, MaxTurns: 5})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, process := range []*service{s, front} {
			wait.For(t, "messages to be rejected", func() bool {
				message := call{method: http.MethodPost, path: "messages", body: body(t, "@text 1 delta")}
				if res := process.do(t, message); res.StatusCode == 200 { // it waits in the queue
					res.Body.Close()
					return false
				}
				r := process.get(t, message)
				if r.status != 503 || r.Error.Code != "AGENTS_STOPPED" || r.header.Get("Retry-After") == "" {
					t.Errorf("%s: %d %s", name, r.status, r.text)
				}
				return true
			})
		}
		var state string
		if err := s.pool.QueryRow(t.Context(), `SELECT state FROM turns WHERE id = $1`, queued).Scan(&state); err != nil || state != "queued" {
			t.Errorf("%s: the queued turn is %s, %v", name, state, err)
		}
		if err := turnSwitch[1](); err != nil {
			t.Fatal(err)
		}
		wait.For(t, "the queued turn", func() bool {
			err := s.pool.QueryRow(t.Context(), `SELECT state FROM turns WHERE id = $1`, queued).Scan(&state)
			return err == nil && state == "completed"
		})
		wait.For(t, "messages to be accepted", func() bool {
			return front.get(t, call{method: http.MethodPost, path: "messages", body: body(t, "@text 1 delta", `"stream":false`)}).status == 200
		})
	}
}
