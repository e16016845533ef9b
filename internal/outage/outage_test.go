package outage_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/outage"
)

// TestOutageIsThreeKindsOfLines fails every second for 150 seconds: one line at the beginning, one
// a minute, and one at the end with the duration.
func TestOutageIsThreeKindsOfLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := outage.New(slog.New(slog.NewTextHandler(&out, nil)), "renew leases")
		down := errors.New("connection refused")
		for range 2 {
			out.Reset()
			l.Note(t.Context(), nil)
			for range 150 {
				l.Note(t.Context(), down, "turns", 3)
				time.Sleep(time.Second)
			}
			l.Note(t.Context(), nil)
			l.Note(t.Context(), nil)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != 4 {
				t.Fatalf("%d lines:\n%s", len(lines), out.String())
			}
			for i, want := range []string{
				`level=WARN msg="renew leases: failed" turns=3 err="connection refused"`,
				`level=WARN msg="renew leases: still failing" turns=3 since=1m0s failures=61 err="connection refused"`,
				`level=WARN msg="renew leases: still failing" turns=3 since=2m0s failures=121 err="connection refused"`,
				`level=INFO msg="renew leases: works again" after=2m30s failures=150`,
			} {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d: %s", i+1, lines[i])
				}
			}
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		out.Reset()
		if l.Note(stopped, down); out.Len() > 0 {
			t.Errorf("after the end: %s", out.String())
		}
	})
}

// TestLostDatabaseEndsOnce: the server logs the loss of the database and its end once. The end of an
// operation is logged only if another failure was.
func TestLostDatabaseEndsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost, cut := &pgconn.PgError{Code: "57P01"}, errors.New("unexpected EOF")
		for _, c := range []struct {
			failures []error // a minute apart
			ends     bool
		}{{[]error{lost, lost}, false}, {[]error{cut, lost}, true}, {[]error{lost, cut}, true}, {[]error{lost}, false}} {
			var out bytes.Buffer
			l := outage.New(slog.New(slog.NewTextHandler(&out, nil)), "renew leases")
			for _, err := range c.failures {
				l.Note(t.Context(), err)
				time.Sleep(time.Minute)
			}
			l.Note(t.Context(), nil)
			if ends := strings.Contains(out.String(), "works again"); ends != c.ends {
				t.Errorf("%v: an end %v, want %v:\n%s", c.failures, ends, c.ends, out.String())
			}
		}
	})
}
