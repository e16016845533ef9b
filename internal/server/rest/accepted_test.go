package rest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/server"
)

// accepted checks a 503 that names the session of an accepted message, and returns the session.
func (s *service) accepted(t testing.TB, r reply, hint string) string {
	t.Helper()
	at := s.URL + "/api/v1/workspaces/demo/sessions/"
	events, _ := r.Error.Turn["events_url"].(string)
	id := strings.TrimSuffix(strings.TrimPrefix(events, at), "/events")
	if r.status != 503 || r.Error.Code != "UNAVAILABLE" || r.header.Get("Retry-After") == "" || r.Error.RetryAfter < 1 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	for _, want := range []string{"The message was accepted", id, events, hint} {
		if want == "" || !strings.Contains(r.Error.Message, want) {
			t.Errorf("%q lacks %q", r.Error.Message, want)
		}
	}
	if r.Error.Turn["cancel_url"] != at+id+"/cancel" || r.Error.Turn["turn_id"] == "" {
		t.Errorf("%s", r.text)
	}
	return id
}

// TestLostBlockingCallIsNotLost checks a blocking call that loses the database after its message
// was stored: the error reports that, and a retry with the same key finds the turn, once.
func TestLostBlockingCallIsNotLost(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Timeout = 2 * time.Second })
	c := call{method: "POST", path: "messages", body: body(t, "@text 3 deltas", `"stream":false`), header: []string{"Idempotency-Key", "once"}}
	first := s.get(t, c)
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE messages IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	lost := s.get(t, c)
	id := s.accepted(t, lost, "same Idempotency-Key")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []reply{first, s.get(t, c)} {
		var a answer
		if err := json.Unmarshal([]byte(r.text), &a); err != nil || r.status != 200 || a.SessionID != id {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	_, path, _ := strings.Cut(lost.Error.Message, "Read the answer at "+s.URL)
	path, _, _ = strings.Cut(path, ". ")
	if got := names(s.open(t, call{path: path}).rest()); got != "open text usage done" {
		t.Errorf("the answer at %s: %s", path, got)
	}
	if list, _ := s.pages(t, "sessions?limit=10"); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}
