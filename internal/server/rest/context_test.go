package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestContextIsRebuilt rebuilds what the model received: the hash is the recorded one, until a row
// is changed. An input of a skill is not in the response.
func TestContextIsRebuilt(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, nil)
	id := sessionOf(t, s.say(t, "@say Look.\n@call once {\"n\":1}\n@say Done.").rest()[0])
	second := s.open(t, call{method: "POST", path: "messages", body: `{"command":"@say Over.","session_id":"` + id + `"}`})
	second.rest()
	type context struct {
		Step     int
		Matches  bool
		Recorded string `json:"recorded_sha256"`
		Erased   bool   `json:"history_erased"`
		Request  struct {
			System   string
			Messages []struct{ Role, Text string }
		}
	}
	get := func(query string) (c context) {
		r := s.get(t, call{path: "sessions/" + id + "/context" + query})
		if r.status != 200 {
			t.Fatalf("%s: %d %s", query, r.status, r.text)
		}
		if err := json.Unmarshal(r.Data, &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for query, messages := range map[string]int{"": 5, "?turn=1": 3, "?turn=1&step=1": 1, "?turn=2&step=1": 5} {
		if c := get(query); !c.Matches || c.Recorded == "" || len(c.Request.Messages) != messages || c.Request.System == "" {
			t.Errorf("%s: %+v", query, c)
		}
	}
	for query, status := range map[string]int{"?turn=3": 404, "?turn=1&step=3": 404, "?turn=0": 400, "?step=x": 400, "?steps=1": 400} {
		if r := s.get(t, call{path: "sessions/" + id + "/context" + query}); r.status != status {
			t.Errorf("%s: %d %s", query, r.status, r.text)
		}
	}
	var fork struct {
		SessionID string `json:"session_id"`
	}
	decode(t, s.get(t, call{method: "POST", path: "sessions/" + id + "/fork", body: "{}"}).Data, &fork)
	if r := s.get(t, call{path: "sessions/" + fork.SessionID + "/context"}); r.status != 404 || !strings.Contains(r.Error.Message,
		"has no turn yet") {
		t.Errorf("a fork without a turn: %d %s", r.status, r.text)
	}
	dbtest.Tamper(t, s.Pool,
		`UPDATE events SET data = replace(data::text, 'Look.', 'Lock.')::json WHERE session_id = $1 AND kind = 'reply'`, id)
	if c := get("?turn=2"); c.Matches || c.Erased || !strings.Contains(c.Request.Messages[1].Text, "Lock.") {
		t.Errorf("a changed row: %+v", c)
	}
	if c := get("?turn=1&step=1"); !c.Matches {
		t.Errorf("the request before the changed row: %+v", c)
	}
}
