package app

import (
	"io"
	"log/slog"

	"github.com/parley-server/parley/internal/logging"
)

// Logger returns a logger that writes to w with the configured level and format.
func (c Config) Logger(w io.Writer) *slog.Logger {
	opt := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return logging.Wrap(slog.NewJSONHandler(w, opt))
	}
	return logging.Wrap(slog.NewTextHandler(w, opt))
}
