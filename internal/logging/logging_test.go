package logging_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/logging"
)

// TestStormIsSummarized logs 290 warnings in a minute, as an outage of the database does.
func TestStormIsSummarized(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := logging.Wrap(slog.NewTextHandler(&out, nil))
		for i := range 290 {
			log.With("session", i).Warn("the database cannot be reached", "err", "refused")
			log.Info("request", "n", i)
			time.Sleep(100 * time.Millisecond)
		}
		log.Error("the turn failed", "err", "other messages are not affected")
		for range 10 {
			log.Error("the model failed", "model", "openai/one", "err", "no quota")
		}
		log.Error("the model failed", "model", "openai/two", "err", "bad key")
		time.Sleep(time.Minute)
		synctest.Wait()
		var warnings []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "cannot be reached") {
				warnings = append(warnings, line)
			}
		}
		if len(warnings) != 6 || !strings.Contains(warnings[5], `err=refused repeated=285 until=2000-01-01T00:00:28.900Z`) {
			t.Errorf("%d warnings:\n%s", len(warnings), strings.Join(warnings, ""))
		}
		if n := strings.Count(out.String(), "msg=request"); n != 290 {
			t.Errorf("%d lines of requests", n)
		}
		for _, want := range []string{"the turn failed", "model=openai/two err=\"bad key\"", "model=openai/one err=\"no quota\" repeated=5"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no line %q", want)
			}
		}
		out.Reset()
		log.Warn("the database cannot be reached")
		if out.Len() == 0 {
			t.Error("the next window admits no line")
		}
	})
}

// TestLossOfTheDatabaseIsOneStorm logs a warning of each of twelve operations, whose errors have the
// loss of the database as their cause, and other lines, which are not affected.
func TestLossOfTheDatabaseIsOneStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := logging.Wrap(slog.NewTextHandler(&out, nil))
		stopped := &pgconn.PgError{Code: "57P01", Message: "terminating connection"}
		log.Warn("listen: failed", "err", fmt.Errorf("wait for notifications: %w", stopped))
		for i := range 11 {
			log.Warn(fmt.Sprintf("step %d: failed", i), "err", fmt.Errorf("read: %w", &pgconn.ConnectError{Config: &pgconn.Config{}}))
		}
		log.Warn("store the file: failed", "err", &pgconn.PgError{Code: "53100", Message: "disk full"})
		log.Warn("call the model: failed", "err", syscall.ECONNREFUSED)
		log.Error("database lost", "err", stopped)
		time.Sleep(time.Minute)
		synctest.Wait()
		text := out.String()
		for _, want := range []string{"listen: failed", "store the file", "call the model", "database lost"} {
			if !strings.Contains(text, want) {
				t.Errorf("no line %q", want)
			}
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if last := lines[len(lines)-1]; len(lines) != 5 ||
			!strings.Contains(last, `msg="operations failed: no connection to the database"`) ||
			!strings.Contains(last, "repeated=11 until=2000-01-01T00:00:00.000Z") {
			t.Errorf("the log is\n%s", text)
		}
	})
}

// TestLinesHaveTheRequest logs with the context of a request, through a derived logger as well.
func TestLinesHaveTheRequest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := logging.Wrap(slog.NewTextHandler(&out, nil))
	ctx := logging.WithRequestID(t.Context(), "req_1")
	log.InfoContext(ctx, "a")
	log.With("session", 2).ErrorContext(ctx, "b")
	log.InfoContext(logging.WithRequestID(t.Context(), ""), "c")
	if n := strings.Count(out.String(), "request=req_1"); n != 2 {
		t.Errorf("%d lines have the id:\n%s", n, out.String())
	}
}
