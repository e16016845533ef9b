package e2e_test

import (
	"net/http"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestDatabaseDies stops and kills PostgreSQL in the middle of an answer. Meanwhile messages are
// rejected with 503, never accepted and lost; afterwards the turn continues and the reader has
// every row once.
func TestDatabaseDies(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	db := dbtest.NewServer(t)
	w := newWorldOn(t, db.DSN())
	s := w.serve(t, nil)
	want := w.expected(t, s, 300)
	session, _ := w.start(t, s, "@text 300 deltas of 12 bytes at 100/s")

	n := 0
	frames, err := w.follow(t.Context(), session, "", func(frame) {
		if n++; n != 60 {
			return
		}
		db.Stop()
		req := w.messages(s, map[string]any{"command": "hello"})
		req.Header.Set("Authorization", "Bearer "+w.key)
		res, err := brief.Do(req)
		if err != nil {
			t.Errorf("send without a database: %v", err)
		} else {
			_ = res.Body.Close()
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				t.Errorf("send without a database: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
			}
		}
		db.Start()
		db.Kill() // and again, this time with SIGKILL
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	w.agree(t, session, frames, want)
	var lost int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM sessions`).Scan(&lost); err != nil || lost != 2 {
		t.Errorf("%d sessions are stored, want the 2 that were accepted (%v)", lost, err)
	}
}
