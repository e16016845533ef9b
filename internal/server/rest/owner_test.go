package rest_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
)

// repeatables are requests whose responses are repeated under their Idempotency-Key.
func repeatables(t *testing.T, s *service) map[string]call {
	t.Helper()
	id := sessionOf(t, s.say(t, "@text 1 delta").rest()[0])
	header := []string{"Idempotency-Key", "one"}
	return map[string]call{
		"a message": {method: http.MethodPost, path: "messages", body: body(t, "@say Private.", `"stream":false`), header: header},
		"a cancel":  {method: http.MethodPost, path: "sessions/" + id + "/cancel", header: header},
		"a ticket":  {method: http.MethodPost, path: "files", body: `{"filename":"a.txt","mime":"text/plain","size":3}`, header: header},
	}
}

// TestAnswersAreRepeatedToTheirOwnKeyOnly checks that a key that may only chat cannot read the
// response to another key.
func TestAnswersAreRepeatedToTheirOwnKeyOnly(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	other := s.Issue(t, s.Workspace, apikey.Chat, apikey.FilesWrite)
	for name, c := range repeatables(t, s) {
		first := s.get(t, c)
		if first.status >= 300 {
			t.Fatalf("%s: %d %s", name, first.status, first.text)
		}
		theirs := c
		theirs.key = other
		if r := s.get(t, theirs); r.status != 422 || r.Error.Code != "IDEMPOTENCY_KEY_REUSED" || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s under another API key: %d %s", name, r.status, r.text)
		}
		if r := s.get(t, c); r.status != first.status || r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s again: %d %s", name, r.status, r.text)
		}
	}
}

// TestRotatedKeysGetTheAnswersOfTheirPredecessors checks that a client that rotates its key between
// retries still finds its request.
func TestRotatedKeysGetTheAnswersOfTheirPredecessors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	calls := repeatables(t, s)
	for name, c := range calls {
		c.key = s.Issue(t, s.Workspace, apikey.All...)
		first := s.get(t, c)
		line := []string{c.key}
		for n := range 2 {
			_, next, err := s.Keys.Rotate(t.Context(), s.Workspace.ID, line[n][4:12], time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			line = append(line, next)
		}
		for n, key := range line {
			c.key = key
			if r := s.get(t, c); r.status != first.status || r.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s after %d rotations: %d %s", name, n, r.status, r.text)
			}
		}
		c.key, c.header = line[2], []string{"Idempotency-Key", fmt.Sprint("of the newest, ", name)}
		if r := s.get(t, c); r.status != first.status {
			t.Fatalf("%s: %d %s", name, r.status, r.text)
		}
		c.key = line[0]
		if r := s.get(t, c); r.status != 422 {
			t.Errorf("%s of a later key, under the earlier one: %d %s", name, r.status, r.text)
		}
	}
}
