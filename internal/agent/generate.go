package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

const (
	maxAttempts = 4                // of one step
	maxPause    = 60 * time.Second // a provider that requests more has effectively failed
)

// generateReply requests one reply from the model and emits its text as it arrives, unless it may
// be an answer in a schema. After a transient failure of the provider it requests a continuation.
func (r *run) generateReply(ctx context.Context, req model.Request) (event.Reply, error) {
	text := strings.Builder{}
	text.WriteString(req.Partial)
	shown := len(req.Partial)
	var used model.Usage
	for attempt := 1; ; attempt++ {
		if req.Output != nil {
			text.Reset() // half an answer in JSON is useless
		}
		req.Partial = text.String()
		calls, cut, err := r.attemptRequest(ctx, req, &text, &shown, &used)
		if err == nil {
			if err := r.showRest(req, text.String(), shown); err != nil {
				return event.Reply{}, err
			}
			return event.Reply{Text: text.String(), JSON: r.isStructuredAnswer(req, text.String()) && len(calls) == 0, Cut: cut, Calls: r.identifyCalls(calls), Usage: event.Usage{
				InputTokens: used.InputTokens, OutputTokens: used.OutputTokens,
				CostUSD: r.Catalog.Cost(r.Model.Name(), used), Model: r.Model.Name(),
			}}, nil
		}
		if ctx.Err() != nil {
			return event.Reply{}, context.Cause(ctx)
		}
		fault, ok := errors.AsType[*model.Error](err)
		if !ok {
			return event.Reply{}, err
		}
		if !fault.Retryable || attempt == maxAttempts || fault.RetryAfter > maxPause {
			return event.Reply{}, &Failure{fault.Code, fault.Message}
		}
		log := r.Log
		if fault.Err != nil {
			log = log.With("cause", fault.Err)
		}
		log.WarnContext(ctx, "the model failed, asking again", "model", r.Model.Name(), "attempt", attempt, "err", fault)
		if err := sleepContext(ctx, max(fault.RetryAfter, retryDelay(attempt))); err != nil {
			return event.Reply{}, err
		}
	}
}

// attemptRequest makes one request. Calls count only if the reply is complete; cut reports that its
// text is not.
func (r *run) attemptRequest(ctx context.Context, req model.Request, text *strings.Builder, shown *int, used *model.Usage) (calls []event.ToolCall, cut bool, err error) {
	for chunk, err := range r.Model.Generate(ctx, req) {
		if err != nil {
			return nil, false, err
		}
		if chunk.Text != "" {
			text.WriteString(event.Plain(chunk.Text))
			if n := r.visibleLength(req, text.String(), *shown); n > *shown {
				t, begins := text.String()[*shown:n], *shown == 0
				*shown = n
				if err := r.showText(t, begins); err != nil {
					return nil, false, err
				}
			}
		}
		if chunk.Call != nil {
			calls = append(calls, *chunk.Call)
		}
		if u := chunk.Usage; u != nil {
			used.InputTokens += u.InputTokens
			used.CachedTokens += u.CachedTokens
			used.OutputTokens += u.OutputTokens
		}
		switch chunk.Stop {
		case model.StopRefused:
			return nil, false, &Failure{event.ContentRefused, "The model refused to answer this."}
		case model.StopLength:
			cut = true
		}
	}
	return calls, cut, nil
}

// identifyCalls gives every call of the turn a unique id: some servers repeat theirs, and results
// are matched by it. A call whose result can be posted, or whose receiver recognizes it by its id, gets an id that no
// other call of any turn has.
func (r *run) identifyCalls(calls []event.ToolCall) []event.ToolCall {
	taken := make(map[string]bool)
	for _, s := range r.state.steps {
		for _, c := range s.reply.Calls {
			taken[c.ID] = true
		}
	}
	for i := range calls {
		if t := r.findTool(calls[i].Tool); t != nil && (t.Spec().Caller || t.Spec().Later || t.Spec().UniqueID) {
			calls[i].ID = "call_" + strings.ToLower(rand.Text())
		} else if calls[i].ID == "" || taken[calls[i].ID] {
			calls[i].ID = fmt.Sprintf("call_%d_%d", len(r.state.steps)+1, i+1)
		}
		taken[calls[i].ID] = true
	}
	return calls
}

func retryDelay(attempt int) time.Duration {
	d := 500 * time.Millisecond << (attempt - 1)
	return d/2 + mathrand.N(d)
}

func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
