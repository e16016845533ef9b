package workdir

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
)

// LogEvery is the interval of the log lines during a long Restore or Save.
const LogEvery = logEvery

// Meter counts a restore of one file.
func Meter(ctx context.Context, log *slog.Logger, size int64) (moved func(bytes int64), end func()) {
	m := New(nil, Options{Log: log}).newMeter(uuid.Nil, false)
	m.expectBytes(size)
	return func(bytes int64) { m.addMoved(ctx, 0, bytes) }, func() { m.logSummary(ctx) }
}
