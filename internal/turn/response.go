package turn

import (
	"context"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
)

// setAgent notes the agent, and the reply of an earlier attempt that continues at the provider.
func (a *attempt) setAgent(ag *agent.Agent, log []event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agent = ag
	for _, ev := range log {
		switch ev.Kind {
		case event.KindReply, event.KindCompacted, event.KindFallback:
			a.response = nil
		case event.KindResponse:
			if body, err := ev.Body(); err == nil {
				b := body.(event.ModelResponse)
				a.response = &b
			}
		}
	}
}

// cancelResponse ends the reply that continues at the provider, after the end of its turn.
func (a *attempt) cancelResponse(ctx context.Context) {
	a.mu.Lock()
	ag, open := a.agent, a.response
	a.response = nil
	a.mu.Unlock()
	if ag != nil && open != nil {
		ag.CancelResponse(ctx, *open)
	}
}
