package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// pending is a reply while it is received.
type pending struct {
	text  strings.Builder // what was received
	shown int             // bytes of the text that readers have seen
	seen  string          // these bytes, while the reply is read again
	skip  int             // bytes of reasoning that readers have seen, and that come again
}

// errDiffers reports that a response which was read again is not what readers have seen of it.
var errDiffers = errors.New("the response is another one")

// resumeOrContinue returns the request of the next attempt. If a response to the same request has
// begun and can be read again, it is read from its beginning. Otherwise the model continues the text.
func (r *run) resumeOrContinue(ctx context.Context, req model.Request, p *pending) model.Request {
	req.Partial, req.Resume, p.seen, p.skip = p.text.String(), "", "", 0
	open := r.state.response
	if open == nil {
		return req
	}
	same := req
	if open.Partial <= len(req.Partial) {
		same.Partial = req.Partial[:open.Partial]
	}
	if open.Model != r.model.Name() || open.PromptSHA256 != r.digestRequest(open.Model, same) {
		r.cancelResponse(ctx) // the agent has changed
		return req
	}
	same.Resume = open.ResponseID
	p.seen, p.skip = req.Partial[:min(p.shown, len(req.Partial))], max(r.thought-open.Reasoning, 0)
	p.text.Reset()
	p.text.WriteString(same.Partial)
	return same
}

// restoreSeen sets the text to what readers have seen, if less of it was received again.
func (p *pending) restoreSeen() {
	if p.text.Len() < len(p.seen) {
		p.text.Reset()
		p.text.WriteString(p.seen)
	}
}

// noteResponse records a response that can be read again, before anything of it is shown.
func (r *run) noteResponse(req model.Request, id string) error {
	b := event.ModelResponse{Model: r.model.Name(), ResponseID: id, PromptSHA256: r.digestRequest(r.model.Name(), req),
		Partial: len(req.Partial), Reasoning: r.thought}
	r.state.response = &b
	return r.emitEvents(b)
}

// addText adds text to the reply and shows what may be shown.
func (r *run) addText(req model.Request, p *pending, text string) error {
	p.text.WriteString(text)
	all := p.text.String()
	if n := min(len(all), len(p.seen)); all[:n] != p.seen[:n] {
		p.text.Reset() // restoreSeen follows
		return errDiffers
	}
	if len(all) <= p.shown {
		return nil
	}
	n := r.visibleLength(req, all, p.shown)
	if n <= p.shown {
		return nil
	}
	t, begins := all[p.shown:n], p.shown == 0
	p.shown = n
	return r.showText(t, begins)
}

// showReasoning emits a piece of the summary of the reasoning, without what readers have seen.
func (r *run) showReasoning(p *pending, text string) error {
	n := min(p.skip, len(text))
	p.skip -= n
	if text = text[n:]; text == "" {
		return nil
	}
	r.thought += len(text)
	return r.emitEvents(event.Reasoning{Text: text})
}

// cancelTime limits the cancellation of a response.
const cancelTime = 10 * time.Second

// endResponse notes that the response has ended at its provider.
func (r *run) endResponse() {
	if open := r.state.response; open != nil {
		r.ended.Store(&open.ResponseID)
	}
	r.state.response = nil
}

// cancelResponse ends the response that has begun, since its text is not used.
func (r *run) cancelResponse(ctx context.Context) {
	open := r.state.response
	r.state.response = nil
	r.Agent.CancelResponse(ctx, *open)
}

// CancelResponse ends a response that continues at its provider, unless Run has seen its end. A failure
// is logged: the provider then completes a reply that is not read.
func (a *Agent) CancelResponse(ctx context.Context, open event.ModelResponse) {
	if id := a.ended.Load(); id != nil && *id == open.ResponseID {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	for _, m := range append([]model.Model{a.Model}, a.Fallbacks...) {
		c, ok := m.(model.Canceler)
		if !ok || m.Name() != open.Model {
			continue
		}
		if err := c.CancelResponse(ctx, open.ResponseID); err != nil {
			a.Log.WarnContext(ctx, "a response of the model could not be canceled", "model", open.Model, "response", open.ResponseID, "err", err)
			return
		}
		a.ended.Store(&open.ResponseID)
		return
	}
}
