package turn_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// sentMessage is a message as the scripted provider receives it.
type sentMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	CallID  string `json:"tool_call_id"`
	Calls   []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// sentMessages returns the messages of a request.
func sentMessages(t testing.TB, req modeltest.Request) []sentMessage {
	t.Helper()
	var body struct {
		Messages []sentMessage `json:"messages"`
	}
	if err := json.Unmarshal(req.Body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Messages
}

// TestSecondTurnSeesTheFirst checks the second message of a session: the model receives the calls
// and results of the first turn, after the same messages as before.
func TestSecondTurnSeesTheFirst(t *testing.T) {
	t.Parallel()
	script := &modeltest.Script{Replies: []modeltest.Reply{
		{Text: []string{"I look."}, Calls: []modeltest.Call{{ID: "call_a", Tool: "book", Input: `{"n": 1}`}},
			Usage: &model.Usage{InputTokens: 100, OutputTokens: 5}},
		{Text: []string{"It is done."}, Usage: &model.Usage{InputTokens: 120, OutputTokens: 5}},
	}}
	w := newWorld(t, script)
	l := newLedger(t, w, false)
	l.leave <- struct{}{}
	r := w.replica(t, nil)
	first := w.start(t, r, "do it")
	read(t, r, first)
	second, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: first.Session, Command: "and now?"})
	if err != nil {
		t.Fatal(err)
	}
	read(t, r, second)

	requests := script.Requests()
	before, after := sentMessages(t, requests[1]), sentMessages(t, requests[2])
	if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
		t.Errorf("the beginning of the conversation differs:\n%s", diff)
	}
	var roles []string
	for _, m := range after {
		roles = append(roles, m.Role)
	}
	if want := []string{"system", "user", "assistant", "tool", "assistant", "user"}; !slices.Equal(roles, want) ||
		after[3].CallID != "call_a" || strings.Contains(after[0].Content, "do it") {
		t.Errorf("the second turn sees %v", after)
	}
}

// TestHistoryFollowsTheWindow sends 60,000 tokens of earlier turns to a model with a window of 200,000:
// without history_tokens it receives all of them, and with a number those that fit.
func TestHistoryFollowsTheWindow(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]int{"window": -1, "24000": 24_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := &modeltest.Script{Replies: slices.Repeat([]modeltest.Reply{{Text: []string{"Noted."}}}, 7)}
			w := newWorld(t, script)
			if _, err := workspace.New(w.pool).Update(t.Context(), w.workspace.ID, workspace.Change{HistoryTokens: &tokens}); err != nil {
				t.Fatal(err)
			}
			r := w.replica(t, func(c *turn.Config) {
				c.Catalog = model.NewCatalog([]model.Entry{{Name: "openai/gpt-5-mini", Window: 200_000}})
			})
			note := strings.Repeat("note ", 8000) // 10,000 tokens
			first := w.start(t, r, "1 "+note)
			read(t, r, first)
			for _, command := range []string{"2 " + note, "3 " + note, "4 " + note, "5 " + note, "6 " + note, "now?"} {
				next, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: first.Session, Command: command})
				if err != nil {
					t.Fatal(err)
				}
				read(t, r, next)
			}
			requests := script.Requests()
			var notes string
			for _, m := range sentMessages(t, requests[len(requests)-1]) {
				if strings.HasSuffix(m.Content, note) {
					notes += m.Content[:1]
				}
			}
			if want := map[int]string{-1: "123456", 24_000: "56"}[tokens]; notes != want {
				t.Errorf("the model receives the notes %q, want %q", notes, want)
			}
		})
	}
}
