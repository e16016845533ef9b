package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
)

// TestForkOverTheAPI forks a session, continues the fork, and lists its messages. A repeat under an
// Idempotency-Key returns the same fork.
func TestForkOverTheAPI(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, nil)
	id := sessionOf(t, s.say(t, "@say One.").rest()[0])
	fork := func(body string, header ...string) (sum session.Summary, r reply) {
		t.Helper()
		r = s.get(t, call{method: "POST", path: "sessions/" + id + "/fork", body: body, header: header})
		if r.status == 201 {
			if err := json.Unmarshal(r.Data, &sum); err != nil {
				t.Fatal(err)
			}
		}
		return sum, r
	}
	first, r := fork(`{}`, "Idempotency-Key", "one")
	if r.status != 201 || first.ForkedFrom == nil || first.ForkedFrom.SessionID.String() != id || first.Status != session.NotStarted {
		t.Fatalf("%d %s", r.status, r.text)
	}
	end := first.ForkedFrom.Seq
	if again, r := fork(`{}`, "Idempotency-Key", "one"); again.SessionID != first.SessionID || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", r.status, r.text)
	}
	if _, r := fork(fmt.Sprintf(`{"seq":%d}`, end), "Idempotency-Key", "one"); r.status != 422 {
		t.Errorf("another request under the key: %d %s", r.status, r.text)
	}
	if other, _ := fork(fmt.Sprintf(`{"seq":%d}`, end)); other.ForkedFrom == nil || other.ForkedFrom.Seq != end ||
		other.SessionID == first.SessionID {
		t.Errorf("a fork at the end: %+v", other)
	}
	for body, code := range map[string]string{`{"seq":0}`: "INVALID_CURSOR", fmt.Sprintf(`{"seq":%d}`, end+1): "INVALID_CURSOR",
		`{"seq":-1}`: "INVALID_REQUEST", `{"seq":"1"}`: "INVALID_REQUEST", `{"at":1}`: "INVALID_REQUEST", `[]`: "INVALID_REQUEST"} {
		if _, r := fork(body); r.status != 400 || r.Error.Code != code {
			t.Errorf("%s: %d %s", body, r.status, r.text)
		}
	}
	s.open(t, call{method: "POST", path: "messages", body: `{"command":"@say Two.","session_id":"` + first.SessionID.String() + `"}`}).rest()
	texts := func(query string) (all []string) {
		t.Helper()
		r := s.get(t, call{path: "sessions/" + first.SessionID.String() + "/messages" + query})
		var page []session.Message
		if err := json.Unmarshal(r.Data, &page); r.status != 200 || err != nil {
			t.Fatalf("%s: %d %s", query, r.status, r.text)
		}
		for _, m := range page {
			text := *m.Content
			if m.InheritedFrom != nil {
				text = m.InheritedFrom.String() + " " + text
			}
			all = append(all, text)
		}
		return all
	}
	want := fmt.Sprint([]string{id + " @say One.", id + " One.", "@say Two.", "Two."})
	if got := fmt.Sprint(texts("")); got != want {
		t.Errorf("the fork has the messages %s, want %s", got, want)
	}
	if got := texts(fmt.Sprint("?as_of_seq=", end)); len(got) != 2 {
		t.Errorf("as of %d: %s", end, got)
	}
	for query, code := range map[string]string{"?as_of_seq=x": "INVALID_CURSOR", "?as_of_seq=01": "INVALID_CURSOR",
		"?as_of_seq=":              "INVALID_CURSOR",
		"?as_of_seq=1&as_of_seq=2": "INVALID_CURSOR", "?as_of_seq=9223372036854775807": "INVALID_CURSOR", "?as_of=1": "INVALID_REQUEST"} {
		if r := s.get(t, call{path: "sessions/" + id + "/messages" + query}); r.status != 400 || r.Error.Code != code {
			t.Errorf("%s: %d %s", query, r.status, r.text)
		}
	}
	wrong := s.get(t, call{path: "sessions/" + id + "/messages?as_of_seq=1.5"})
	if want := `as_of_seq "1.5" is not the id of an event.`; wrong.status != 400 || wrong.Error.Code != "INVALID_CURSOR" ||
		!strings.Contains(wrong.Error.Message, want) {
		t.Errorf("%d %s", wrong.status, wrong.text)
	}
	if r := s.get(t, call{path: "sessions/" + first.SessionID.String() + "/events?replay=all"}); strings.Contains(r.text, "One.") ||
		!strings.Contains(r.text, "Two.") {
		t.Errorf("the stream of the fork: %s", r.text)
	}
	if r := s.get(t, call{path: "sessions"}); !strings.Contains(r.text, `"forked_from":{"session_id":"`+id+`"`) {
		t.Errorf("the list of sessions: %s", r.text)
	}
	if owns, err := s.Sessions.IsOwner(t.Context(), s.Workspace.ID, first.SessionID, s.Key[4:12]); err != nil || !owns {
		t.Errorf("the key that made the fork owns it: %t, %v", owns, err)
	}
	if r := s.get(t, call{method: "POST", path: "sessions/" + uuid.NewString() + "/fork", body: `{}`}); r.status != 404 ||
		r.Error.Code != "SESSION_NOT_FOUND" {
		t.Errorf("an unknown session: %d %s", r.status, r.text)
	}
}
