package app

import (
	"io"
	"log/slog"
)

// Logger returns a logger that writes to w with the configured level and format.
func (c Config) Logger(w io.Writer) *slog.Logger {
	opt := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}
