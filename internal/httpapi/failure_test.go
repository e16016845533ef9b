package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/httpapi"
)

// A mistake of ours is told as one sentence, and a panic hurts one request only.
func TestMistakesTellNothing(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpapi.Config) {
		c.Ready = func(context.Context) error { panic("the secret plan") }
	})
	s.say(t, "@text 1 delta").rest()
	if _, err := s.pool.Exec(t.Context(), `ALTER TABLE sessions RENAME COLUMN title TO headline`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{{path: "/readyz", key: "-"}, {path: "sessions"}} {
		r := s.get(t, c)
		if r.status != 500 || r.Error.Code != "INTERNAL" || r.Error.Type != "api_error" || r.Error.Message != "Internal error." || strings.Contains(r.text, "title") {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "/healthz", key: "-"}); r.status != 200 {
		t.Errorf("afterwards: %d", r.status)
	}
}

// A database that does not answer is as good as one that is away.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpapi.Config) { c.Timeout = 200 * time.Millisecond })
	s.say(t, "@text 1 delta").rest()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{{path: "sessions"}, {method: "POST", path: "messages", body: body(t, "@text 1 delta")}} {
		if r := s.get(t, c); r.status != 503 || r.Error.Code != "UNAVAILABLE" {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := httpapi.New(httpapi.Config{}); err == nil {
		t.Error("made of nothing")
	}
}
