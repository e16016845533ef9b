package rest

import (
	"time"

	"github.com/parley-server/parley/internal/server"
)

// documentLimits returns the limits that can be configured, by their names in the document.
func documentLimits(cfg server.Config) map[string]int {
	l := map[string]int{
		"keepalive_seconds":     ceilSeconds(cfg.Keepalive),
		"write_timeout_seconds": ceilSeconds(cfg.WriteTimeout),
		"messages_per_minute":   0, "calls_per_minute": 0, "open_streams": 0,
		"failed_keys_per_minute": cfg.Failures.PerMinute(),
	}
	if cfg.Sessions != nil {
		l["replay_seconds"] = ceilSeconds(cfg.Sessions.ReplayWindow())
	}
	if cfg.Limits != nil {
		own := cfg.Limits.Limits()
		l["messages_per_minute"], l["calls_per_minute"], l["open_streams"] = own.Messages, own.Calls, own.Streams
	}
	if cfg.Turns != nil {
		l["approval_window_seconds"] = ceilSeconds(cfg.Turns.Window())
	}
	if cfg.Files != nil {
		l["signed_url_seconds"] = ceilSeconds(cfg.Files.TTL())
	}
	return l
}

func ceilSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
