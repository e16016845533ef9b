package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// chooseModel sets the model of the next step: the agent's, or the one that answers in its place
// since an earlier step of the turn.
func (r *run) chooseModel() {
	r.model, r.rest = r.Model, r.Fallbacks
	i := slices.IndexFunc(r.Fallbacks, func(m model.Model) bool { return m.Name() == r.state.fallback })
	if i >= 0 {
		r.model, r.rest = r.Fallbacks[i], r.Fallbacks[i+1:]
	}
}

// fallBack replaces the model of the turn by the next one that can answer, after a failure before
// the first text of a step. ok is false if there is none, or if another model would fail as well.
func (r *run) fallBack(ctx context.Context, failed *model.Error) (ok bool, err error) {
	reason := fallbackReason(failed)
	for reason != "" && len(r.rest) > 0 {
		next := r.rest[0]
		r.rest = r.rest[1:]
		if err := r.checkCost(ctx, next.Name()); err != nil {
			refused, isFailure := errors.AsType[*Failure](err)
			if !isFailure {
				return false, err
			}
			r.Log.WarnContext(ctx, "fallback model skipped", "model", next.Name(), "reason", refused.Message)
			continue
		}
		r.Log.WarnContext(ctx, "another model answers", "model", r.model.Name(), "fallback", next.Name(), "reason", reason, "err", failed)
		if err := r.emitEvents(event.ModelFallback{From: r.model.Name(), To: next.Name(), Reason: reason}); err != nil {
			return false, err
		}
		r.model = next
		return true, nil
	}
	return false, nil
}

// fallbackReason returns why another model could answer in place of one that failed, or "".
func fallbackReason(failed *model.Error) event.FallbackReason {
	switch {
	case failed.Code == event.ModelOverloaded:
		return event.Overloaded
	case failed.Admin && !failed.Retryable:
		return event.NotUsable
	case failed.Retryable:
		return event.NotReachable
	}
	return ""
}
