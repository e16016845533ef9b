package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
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
// be an answer in a schema. After a transient failure of the provider it reads the same response
// again, or requests a continuation.
func (r *run) generateReply(ctx context.Context, req model.Request) (event.Reply, error) {
	req.CacheKey = r.c.Session.String()
	req.Summaries = r.Summaries && !r.hidden
	p := pending{shown: len(req.Partial)}
	p.text.WriteString(req.Partial)
	var used model.Usage
	var retries []event.Code
	for attempt := 1; ; attempt++ {
		if req.Output != nil || r.hidden {
			p.text.Reset() // half an answer in JSON is useless
		}
		req = r.resumeOrContinue(ctx, req, &p)
		r.partial = req.Partial
		got, err := r.attemptRequest(ctx, req, &p, &used)
		if err == nil {
			r.endResponse()
			if err := r.showRest(req, p.text.String(), p.shown); err != nil {
				return event.Reply{}, err
			}
			return event.Reply{Text: p.text.String(), JSON: r.isStructuredAnswer(req, p.text.String()) && len(got.calls) == 0, Cut: got.cut,
				Calls: r.identifyCalls(got.calls),
				Usage: r.usageOf(used), Reasoning: r.sealReasoning(ctx, got.reasoning), RequestID: got.requestID, Retries: retries}, nil
		}
		if ctx.Err() != nil {
			return event.Reply{}, context.Cause(ctx)
		}
		p.restoreSeen()
		if errors.Is(err, errDiffers) {
			r.Log.WarnContext(ctx, "a response that was read again differs", "model", r.model.Name())
			r.cancelResponse(ctx)
			if attempt >= maxAttempts {
				return event.Reply{}, &Failure{Code: event.ModelError,
					Message: "The reply of the model was interrupted several times. Send the message again."}
			}
			continue
		}
		fault, ok := errors.AsType[*model.Error](err)
		if !ok {
			return event.Reply{}, err
		}
		if fault.Ended {
			r.endResponse()
		}
		if !fault.Resumable {
			r.state.response = nil
		}
		if req.Resume != "" && !fault.Resumable {
			r.Log.WarnContext(ctx, "a response cannot be read again, the model continues its text", "model", r.model.Name(), "err", fault)
			retries = append(retries, fault.Code)
			attempt-- // the next one is the first of another response
			continue
		}
		if !fault.Retryable || attempt >= maxAttempts || fault.RetryAfter > maxPause {
			r.logFailure(ctx, fault)
			if p.shown == 0 {
				replaced, err := r.fallBack(ctx, fault)
				if err != nil {
					return event.Reply{}, err
				}
				if replaced {
					attempt = 0
					p.text.Reset()
					continue
				}
			}
			return event.Reply{}, &Failure{Code: fault.Code, Message: fault.Message, Final: fault.TooLong ||
				fault.Admin && !fault.Retryable, tooLong: fault.TooLong}
		}
		retries = append(retries, fault.Code)
		log := r.Log
		if fault.Err != nil {
			log = log.With("cause", fault.Err)
		}
		log.WarnContext(ctx, "the model failed, asking again", "model", r.model.Name(), "attempt", attempt, "err", fault)
		if err := sleepContext(ctx, max(fault.RetryAfter, retryDelay(attempt))); err != nil {
			return event.Reply{}, err
		}
	}
}

// received is what one request returned besides text and usage. It counts only if the reply is
// complete.
type received struct {
	calls     []event.ToolCall
	cut       bool // the text is not complete
	reasoning []model.Reasoning
	requestID string
}

// usageOf returns the usage of a reply.
func (r *run) usageOf(used model.Usage) event.Usage {
	return event.Usage{
		InputTokens: used.InputTokens, CachedInputTokens: used.CachedTokens, CacheWriteTokens: used.CacheWriteTokens,
		OutputTokens: used.OutputTokens, CostUSD: r.Catalog.Cost(r.model.Name(), used), Model: r.model.Name(),
	}
}

// attemptRequest makes one request.
func (r *run) attemptRequest(ctx context.Context, req model.Request, p *pending, used *model.Usage) (got received, err error) {
	for chunk, err := range r.model.Generate(ctx, req) {
		if err != nil {
			return received{}, err
		}
		if chunk.Response != "" {
			if err := r.noteResponse(req, chunk.Response); err != nil {
				return received{}, err
			}
		}
		if chunk.Summary != "" && req.Summaries {
			if err := r.showReasoning(p, event.Plain(chunk.Summary)); err != nil {
				return received{}, err
			}
		}
		if chunk.Text != "" {
			if err := r.addText(req, p, event.Plain(chunk.Text)); err != nil {
				return received{}, err
			}
		}
		if chunk.Call != nil {
			got.calls = append(got.calls, *chunk.Call)
		}
		if chunk.Reasoning != nil {
			got.reasoning = append(got.reasoning, *chunk.Reasoning)
		}
		if chunk.Usage != nil {
			used.Add(*chunk.Usage)
		}
		got.requestID = cmp.Or(chunk.RequestID, got.requestID)
		switch chunk.Stop {
		case model.StopRefused:
			return received{}, &Failure{Code: event.ContentRefused, Message: "The model refused to answer this."}
		case model.StopLength:
			got.cut = true
		}
	}
	return got, nil
}

// identifyCalls gives every call of the turn a unique id: some servers repeat theirs, and results
// are matched by it. A call whose result can be posted, or whose receiver recognizes it by its id,
// gets an id that no other call of any turn has.
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

// logFailure logs the failure that ends a turn: as an error if an administrator must act.
func (r *run) logFailure(ctx context.Context, e *model.Error) {
	level := slog.LevelWarn
	if e.Admin {
		level = slog.LevelError
	}
	name := cmp.Or(e.Model, r.model.Name())
	provider, _, _ := strings.Cut(name, "/")
	r.Log.Log(ctx, level, "the model failed", "provider", provider, "model", name, "status", e.Status, "request_id", e.RequestID, "err", e,
		"cause", e.Err)
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
