package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// question is the question of a turn before it writes a wiki page.
type question struct {
	session, cursor string
	page            string // the content to approve

	ApprovalID string `json:"approval_id"`
	DecideURL  string `json:"decide_url"`
	SecretURL  string `json:"secret_url"`
	Operations []struct {
		Tool  string
		Input struct{ Page, Content string }
	}
}

// ask starts a turn that writes the wiki page travel, and reads to its question.
func (w *world) ask(t *testing.T, s *server) question {
	t.Helper()
	const content = "Trains first.\n\n“Grüße” & <b>\u00a017\u202f%</b>"
	input, _ := json.Marshal(map[string]string{"page": "travel", "content": content})
	q := question{page: content}
	err := w.stream(t.Context(), w.messages(s, map[string]any{"command": "@say I write it down.\n@call wiki_write " + string(input) +
		"\n@say Done."}), func(f frame) bool {
		var data struct {
			SessionID string `json:"session_id"`
		}
		if f.Event == "open" && json.Unmarshal([]byte(f.Data), &data) == nil {
			q.session = data.SessionID
		}
		if q.cursor = f.ID; f.Event != "input_required" {
			return true
		}
		if err := json.Unmarshal([]byte(f.Data), &q); err != nil {
			t.Errorf("%s: %v", f.Data, err)
		}
		return false
	})
	if err != nil || len(q.Operations) != 1 || q.Operations[0].Input.Content != content {
		t.Fatalf("%+v: %v", q, err)
	}
	return q
}

// decided is the response to a decision.
type decided struct {
	Data struct {
		Status  string
		Already bool `json:"already_decided"`
	}
	Error struct{ Code, Status string }
}

func (w *world) decide(t *testing.T, s *server, q question, decision string) (int, decided) {
	t.Helper()
	res, body := w.do(t, w.decision(t, s, q.DecideURL, decision))
	var d decided
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return res.StatusCode, d
}

// written checks that the approved call ran once, with the approved content.
func (w *world) written(t *testing.T, q question, rest []frame) {
	t.Helper()
	var kinds []string
	for _, f := range rest {
		if f.Event != "text" {
			kinds = append(kinds, f.Event)
		}
		if f.Event == "tool_result" && !strings.Contains(f.Data, `"ok":true`) {
			t.Errorf("the call ended with %s", f.Data)
		}
	}
	if want := []string{"tool_use", "tool_result", "usage", "done"}; !slices.Equal(kinds, want) || !strings.Contains(text(rest), "Done.") {
		t.Errorf("after the decision: %v, text %q", kinds, text(rest))
	}
	var content string
	var version, decisions int
	err := w.pool.QueryRow(t.Context(), `SELECT content, version, (SELECT count(*) FROM events WHERE session_id = $1 AND kind = 'decision')
		FROM documents WHERE path = 'wiki/travel.md'`, q.session).Scan(&content, &version, &decisions)
	if err != nil || content != q.page || version != 1 || decisions != 1 {
		t.Errorf("the page is %q, version %d, after %d decisions: %v", content, version, decisions, err)
	}
}

// TestApprovedElsewhere kills the server of a waiting turn. Another one accepts the decision and
// runs the call.
func TestApprovedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.serve(t, nil)
	q := w.ask(t, first)
	first.kill()
	second := w.serve(t, nil)
	if status, d := w.decide(t, second, q, "allow"); status != http.StatusOK || d.Data.Status != "allowed" || d.Data.Already {
		t.Fatalf("%d %+v", status, d)
	}
	rest, err := w.follow(t.Context(), q.session, q.cursor, nil, second)
	if err != nil {
		t.Fatal(err)
	}
	w.written(t, q, rest)
	if n := w.nodes(t, q.session); n != 2 {
		t.Errorf("the turn ran on %d nodes, want 2", n)
	}
}

// TestKilledAfterTheDecision kills the server that accepts the decision as soon as it has
// committed, or a little later, whether or not it could still respond.
func TestKilledAfterTheDecision(t *testing.T) {
	t.Parallel()
	for name, reached := range map[string]string{
		"committed": `SELECT count(*) > 0 FROM events WHERE session_id = $1 AND kind = 'decision'`,
		"claimed":   `SELECT count(*) > 1 FROM events WHERE session_id = $1 AND kind = 'started'`,
		"begun":     `SELECT count(*) > 0 FROM events WHERE session_id = $1 AND kind = 'tool_use'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.serve(t, nil)
			q := w.ask(t, first)
			allow := w.decision(t, first, q.DecideURL, "allow")
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _, _ = w.try(allow)
			}()
			for there := false; !there; {
				if err := w.pool.QueryRow(t.Context(), reached, q.session).Scan(&there); err != nil {
					t.Fatal(err)
				}
			}
			first.kill()
			wait.Receive(t, "the answer", answered)
			second := w.serve(t, nil)
			if status, d := w.decide(t, second, q, "allow"); status != http.StatusOK || d.Data.Status != "allowed" || !d.Data.Already {
				t.Errorf("the same again: %d %+v", status, d)
			}
			if status, d := w.decide(t, second, q, "deny"); status != http.StatusConflict || d.Error.Status != "allowed" {
				t.Errorf("the opposite: %d %+v", status, d)
			}
			rest, err := w.follow(t.Context(), q.session, q.cursor, nil, second)
			if err != nil {
				t.Fatal(err)
			}
			w.written(t, q, rest)
		})
	}
}

// TestNobodyRunsWhenTheTimeIsOver lets an approval expire while no process runs. It counts as
// expired nevertheless: for the first answer, and for the turn.
func TestNobodyRunsWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	window := []string{"PARLEY_APPROVAL_WINDOW=2s"}
	first, other := w.serve(t, window), w.serve(t, window, "--no-workers")
	q := w.ask(t, first)
	first.kill()
	other.kill()
	wait.For(t, "the time is over", func() (over bool) {
		if err := w.pool.QueryRow(t.Context(), `SELECT expires_at < clock_timestamp() FROM approvals WHERE id = $1`,
			q.ApprovalID).Scan(&over); err != nil {
			t.Fatal(err)
		}
		return over
	})
	late := func(s *server) {
		t.Helper()
		for _, decision := range []string{"allow", "deny"} {
			if status, d := w.decide(t, s, q, decision); status != http.StatusGone || d.Error.Code != "APPROVAL_EXPIRED" ||
				d.Error.Status != "expired" {
				t.Errorf("%s: %d %+v", decision, status, d)
			}
		}
	}
	idle := w.serve(t, window, "--no-workers") // no process has noticed yet
	late(idle)
	w.serve(t, window)
	rest, err := w.follow(t.Context(), q.session, q.cursor, nil, idle)
	if err != nil {
		t.Fatal(err)
	}
	denied := slices.ContainsFunc(rest, func(f frame) bool {
		return f.Event == "tool_result" && strings.Contains(f.Data, `"ok":false`) && strings.Contains(f.Data, "The approval was not answered ")
	})
	if !denied || !strings.Contains(text(rest), "Done.") {
		t.Errorf("%v", rest)
	}
	late(idle)
	var pages int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM documents`).Scan(&pages); err != nil || pages != 0 {
		t.Errorf("%d pages were written, %v", pages, err)
	}
}
