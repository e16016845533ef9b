package logging_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		time.Sleep(time.Minute)
		synctest.Wait()
		var warnings []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "cannot be reached") {
				warnings = append(warnings, line)
			}
		}
		if len(warnings) != 6 || !strings.Contains(warnings[5], `err=refused repeated=285 within=1m0s`) {
			t.Errorf("%d warnings:\n%s", len(warnings), strings.Join(warnings, ""))
		}
		if n := strings.Count(out.String(), "msg=request"); n != 290 {
			t.Errorf("%d lines of requests", n)
		}
		if !strings.Contains(out.String(), "the turn failed") {
			t.Error("another message is missing")
		}
		out.Reset()
		log.Warn("the database cannot be reached")
		if out.Len() == 0 {
			t.Error("the next window admits no line")
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
