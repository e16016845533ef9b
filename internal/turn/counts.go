package turn

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/model"
)

// counts counts the steps of turns.
type counts struct{ *metrics.Metrics }

// modelCall is a running request to a provider.
type modelCall struct {
	counts
	provider string
	began    time.Time
	spoke    bool
	err      error
}

// beginModelCall counts a request to the provider of a model. The caller ends it.
func (c counts) beginModelCall(name string) *modelCall {
	provider, _, _ := strings.Cut(name, "/")
	c.ModelRunning.Inc()
	return &modelCall{counts: c, provider: metrics.Provider(provider), began: time.Now()}
}

// note records a chunk of the reply, or the error in its place.
func (m *modelCall) note(err error) {
	if m.err = err; err == nil && !m.spoke {
		m.spoke = true
		m.ModelFirst.WithLabelValues(m.provider).Observe(time.Since(m.began).Seconds())
	}
}

// end counts the outcome and returns it. ctx is that of the request.
func (m *modelCall) end(ctx context.Context) string {
	m.ModelRunning.Dec()
	m.ModelTime.WithLabelValues(m.provider).Observe(time.Since(m.began).Seconds())
	outcome := "ok"
	failed, _ := errors.AsType[*model.Error](m.err)
	switch {
	case ctx.Err() != nil:
		outcome = "canceled"
	case failed != nil && failed.Code == event.ModelOverloaded:
		outcome = "overloaded"
	case m.err != nil:
		outcome = "failed"
	}
	m.ModelCalls.WithLabelValues(m.provider, outcome).Inc()
	return outcome
}

// countUsage counts the tokens and the cost of a reply.
func (c counts) countUsage(u event.Usage) {
	name, _, _ := strings.Cut(u.Model, "/")
	provider := metrics.Provider(name)
	for kind, n := range map[string]int64{"input": u.InputTokens, "cached_input": u.CachedInputTokens, "cache_write": u.CacheWriteTokens,
		"output": u.OutputTokens} {
		c.Tokens.WithLabelValues(provider, kind).Add(float64(max(0, n)))
	}
	if u.CostUSD != nil {
		c.Cost.WithLabelValues(provider).Add(max(0, *u.CostUSD))
	}
}

// countTool counts a tool call that has a result. began is zero if another worker began it.
func (c counts) countTool(r event.ToolResult, began time.Time) {
	outcome, name := "failed", metrics.Tool(r.Tool)
	if r.OK {
		outcome = "ok"
	}
	c.ToolCalls.WithLabelValues(name, outcome).Inc()
	if !began.IsZero() {
		c.ToolTime.WithLabelValues(name).Observe(time.Since(began).Seconds())
	}
}

// countRenewal counts a renewal of leases.
func (c counts) countRenewal(err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	c.Renewals.WithLabelValues(outcome).Inc()
}

// Running returns how many turns run in this process.
func (s *Service) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Admitting returns how many messages wait in this process for admission.
func (s *Service) Admitting() int { return int(s.admission.waiting.Load()) }
