package app

import (
	"io"
	"log/slog"
)

// Logger writes to w as the configuration says.
func (c Config) Logger(w io.Writer) *slog.Logger {
	opt := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}
