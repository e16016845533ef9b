package rest_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFeedbackIsPartOfTheLog rates an answer. The newest opinion counts, streams do not show it,
// and a reader behind it can still resume.
func TestFeedbackIsPartOfTheLog(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, nil)
	st := s.say(t, "@say Done.")
	frames := st.rest()
	id := sessionOf(t, frames[0])
	done := frames[len(frames)-1].id
	var messages []struct {
		TurnID string `json:"turn_id"`
	}
	if err := json.Unmarshal(s.get(t, call{path: "sessions/" + id + "/messages"}).Data, &messages); err != nil {
		t.Fatal(err)
	}
	path := "sessions/" + id + "/turns/" + messages[1].TurnID + "/feedback"
	for body, want := range map[string]int{`{"rating":"good"}`: 200, `{"rating":"fine"}`: 400, `{"note":"x"}`: 400,
		`{"rating":"good","stars":5}`: 400} {
		if r := s.get(t, call{method: "POST", path: path, body: body}); r.status != want {
			t.Errorf("%s: %d %s", body, r.status, r.text)
		}
	}
	if r := s.get(t, call{method: "POST", path: path, body: `{"rating":"bad","note":"It is short."}`}); r.status != 200 {
		t.Errorf("%d %s", r.status, r.text)
	}
	list := s.get(t, call{path: "sessions/" + id + "/feedback"}).text
	if strings.Count(list, `"rating"`) != 1 || !strings.Contains(list, `"rating":"bad","note":"It is short."`) {
		t.Errorf("the list is %s", list)
	}
	for _, cursor := range []string{frames[0].id, done} {
		got := names(s.open(t, call{path: "sessions/" + id + "/events?replay=all&last_event_id=" + cursor}).rest())
		if strings.Contains(got, "error") || !strings.HasSuffix(got, "done") || strings.Contains(got, "feedback") {
			t.Errorf("after %s: %s", cursor, got)
		}
	}
	other := "sessions/" + id + "/turns/" + id + "/feedback"
	if r := s.get(t, call{method: "POST", path: other, body: `{"rating":"good"}`}); r.status != 404 {
		t.Errorf("another turn: %d %s", r.status, r.text)
	}
	running := s.say(t, "@call gate {}\n@say Over.")
	session := sessionOf(t, running.until("open")[0])
	s.Gate.Await(t)
	if err := json.Unmarshal(s.get(t, call{path: "sessions/" + session + "/messages"}).Data, &messages); err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{method: "POST", path: "sessions/" + session + "/turns/" + messages[1].TurnID + "/feedback",
		body: `{"rating":"good"}`}); r.status != 409 || r.Error.Turn["events_url"] == nil {
		t.Errorf("a running turn: %d %s", r.status, r.text)
	}
	s.Gate.Leave <- struct{}{}
	running.rest()
}
