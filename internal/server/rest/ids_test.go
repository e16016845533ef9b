package rest_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/apikey"
)

// TestIdsAndTimes checks that every id of the API is a UUID of version 7, and that every time is
// UTC.
func TestIdsAndTimes(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	s.things(t)
	s.ticket(t, "a.txt", 5)
	r := s.get(t, call{method: "POST", path: "messages", body: body(t, "@text 1 delta", `"callback":"https://listen.invalid/"`)})
	text := string(r.Data)
	for _, list := range []string{"sessions?limit=100", "approvals", "callbacks", "files"} {
		text += s.get(t, call{path: list}).text
	}
	var session struct {
		ID string `json:"session_id"`
	}
	decode(t, r.Data, &session)
	text += s.get(t, call{path: "sessions/" + session.ID + "/messages"}).text
	for _, part := range strings.Split(text, `_id":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		parsed, err := uuid.Parse(id)
		if err != nil { // the ids of tool calls, callers and keys are not UUIDs
			continue
		}
		if parsed.Version() != 7 {
			t.Errorf("%s is of version %d", id, parsed.Version())
		}
	}
	for _, part := range strings.Split(text, `_at":"`)[1:] {
		if at, _, _ := strings.Cut(part, `"`); !strings.HasSuffix(at, "Z") {
			t.Errorf("%s is not UTC", at)
		}
	}
	for _, kind := range []string{"session_id", "turn_id", "message_id", "approval_id", "file_id", "callback_id", "created_at",
		"expires_at", "updated_at"} {
		if !strings.Contains(text, `"`+kind+`":"`) {
			t.Errorf("no %s was looked at", kind)
		}
	}
}

// TestReadersSeeTheUsage checks that every reader of a session sees the cost of an answer.
func TestReadersSeeTheUsage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := sessionOf(t, s.say(t, "@text 2 deltas").rest()[0])
	attach := events(id, "?replay=all")
	attach.key = s.Issue(t, s.Workspace, apikey.SessionsRead)
	frames := s.open(t, attach).rest()
	if got := names(frames); got != "open text usage done" || !strings.Contains(frames[len(frames)-2].data,
		`"cost_usd":0,"model":"builtin/guide"`) {
		t.Errorf("%v", frames)
	}
}
