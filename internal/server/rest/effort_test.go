package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/workspace"
)

// TestEffortOfAMessage checks that the effort of a message is in the model's request, in place of the
// agent's, and that a workspace which accepts no parameters from callers rejects it.
func TestEffortOfAMessage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := sessionOf(t, s.say(t, "@say x", `"effort":"high"`).rest()[0])
	if r := s.get(t, call{path: "sessions/" + id + "/context"}); !strings.Contains(r.text, `"effort":"high"`) {
		t.Errorf("%s", r.text)
	}
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{CallerParameters: new(false)}); err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{method: http.MethodPost, path: "messages",
		body: body(t, "x", `"effort":"high"`)}); r.status != http.StatusBadRequest ||
		!strings.Contains(r.text, `"param":"/effort"`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	s.say(t, "@say x").rest()
}
