package turn

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/parley-server/parley/internal/session"
)

// reportFinish logs a turn that this process has ended: with the answer, with a failure, or because of
// a cancel.
func (s *Service) reportFinish(ctx context.Context, e session.Finished) {
	t, took := e.Turn, s.since(e.Turn.CreatedAt, time.Now())
	s.cfg.Metrics.TurnsFinished.WithLabelValues(string(e.State), cmp.Or(string(e.Error), "none")).Inc()
	s.cfg.Metrics.TurnTime.WithLabelValues(string(e.State)).Observe(took.Seconds())
	attrs := []slog.Attr{
		slog.Any("session", t.SessionID), slog.Any("turn", t.ID), slog.Any("workspace", t.WorkspaceID), slog.Any("state", e.State),
		slog.Duration("duration", took.Round(time.Millisecond)),
	}
	if first, ok := s.firstText(t); ok {
		s.cfg.Metrics.FirstText.Observe(first.Seconds())
		attrs = append(attrs, slog.Duration("first_text", first.Round(time.Millisecond)))
	}
	attrs = append(attrs, slog.Int("steps", e.Steps), slog.Int("tools", e.Tools), slog.Int("attempts", e.Attempts))
	if u := e.Usage; u != nil {
		attrs = append(attrs, slog.String("model", u.Model), slog.Int64("input_tokens", u.InputTokens),
			slog.Int64("cached_tokens", u.CachedInputTokens), slog.Int64("output_tokens", u.OutputTokens))
		if u.CostUSD != nil {
			attrs = append(attrs, slog.Float64("cost_usd", *u.CostUSD))
		}
	}
	if t.KeyID != nil {
		attrs = append(attrs, slog.String("key", *t.KeyID))
	}
	if e.Error != "" {
		attrs = append(attrs, slog.Any("error", e.Error))
	}
	ctx = s.contextOf(ctx, t) // not that of a cancel
	s.traceTurn(ctx, e, took)
	s.log.LogAttrs(ctx, slog.LevelInfo, "turn finished", attrs...)
}

// firstText returns the time from the message to its first text; ok is false if it had none, or if
// another worker showed it.
func (s *Service) firstText(t session.Turn) (d time.Duration, ok bool) {
	a := s.findAttempt(t.ID)
	if a == nil {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.IsZero() || a.spoke {
		return 0, false
	}
	return s.since(t.CreatedAt, a.first), true
}

// since returns the time from a time on PostgreSQL's clock to one on the process's.
func (s *Service) since(begin, end time.Time) time.Duration {
	return max(0, end.Add(s.cfg.Pulse.Offset()).Sub(begin))
}
