package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/workspace"
)

// TestReasoningIsNotTheAnswer checks that a stream has the summary of the reasoning if the workspace
// wants it, that nothing of it is stored otherwise, and that it is not a part of the answer.
func TestReasoningIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const script = "@think The page can help.\n@say Let me look.\n@call wiki_list {}\n@think That is it.\n@say Yes."
	stored := func() (n int) {
		t.Helper()
		if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE kind = 'reasoning'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.say(t, script).rest()
	if n := stored(); n > 0 {
		t.Errorf("%d events without the setting", n)
	}
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{ReasoningSummaries: new(true)}); err != nil {
		t.Fatal(err)
	}
	frames := s.say(t, script).rest()
	id := sessionOf(t, frames[0])
	var kinds []string
	for _, f := range frames {
		if n := len(kinds); n == 0 || kinds[n-1] != f.event {
			kinds = append(kinds, f.event)
		}
	}
	if got := strings.Join(kinds, " "); got != "open reasoning text tool_use tool_result reasoning text usage done" {
		t.Errorf("%s", got)
	}
	if r := s.get(t, call{path: "sessions/" + id + "/messages"}); !strings.Contains(r.text, `"content":"Let me look.\n\nYes."`) ||
		!strings.Contains(r.text, `"output":"Yes."`) {
		t.Errorf("%s", r.text)
	}
	r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, script, `"stream":false`)})
	if !strings.Contains(r.text, `"output":"Yes."`) {
		t.Errorf("%s", r.text)
	}
}
