package app

import (
	"io"
	"log/slog"
	"time"

	"github.com/parley-server/parley/internal/logging"
)

// Logger returns a logger that writes to w with the configured level and format.
func (c Config) Logger(w io.Writer) *slog.Logger {
	opt := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		opt.ReplaceAttr = nameUnit
		return logging.Wrap(slog.NewJSONHandler(w, opt))
	}
	return logging.Wrap(slog.NewTextHandler(w, opt))
}

// nameUnit converts a duration, which JSON would have as a number without a unit.
func nameUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration())/float64(time.Millisecond))
}
