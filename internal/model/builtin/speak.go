package builtin

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/model"
)

// runesPerToken is the usual estimate.
const runesPerToken = 4

// speaker sends a reply at its pace. One timer serves all deltas: a waiting stream costs nothing
// else, and a late one catches up.
type speaker struct {
	ctx   context.Context
	yield func(model.Chunk, error) bool
	once  func(directive int) bool
	timer *time.Timer
	runes int // sent so far
	left  int // runes that may still be sent; negative: no limit
	stop  stopper

	summaries bool // of reasoning are wanted
}

// sendReply sends the rest of a reply, and its end.
func (s *speaker) sendReply(r reply, input int64) {
	defer func() {
		if s.timer != nil {
			s.timer.Stop()
		}
	}()
	for _, p := range r.parts {
		if !s.sendPart(p) {
			return
		}
		if s.left == 0 {
			s.endReply(r, input, model.StopLength)
			return
		}
		if s.stop.found {
			s.endReply(r, input, model.StopEnd)
			return
		}
	}
	if !s.sendText(s.stop.held) {
		return
	}
	for _, call := range r.calls {
		s.runes += utf8.RuneCountInString(call.Tool) + utf8.RuneCount(call.Input)
		if !s.yield(model.Chunk{Call: &call}, nil) {
			return
		}
	}
	stop := r.stop
	switch {
	case stop != "":
	case len(r.calls) > 0:
		stop = model.StopTools
	default:
		stop = model.StopEnd
	}
	s.endReply(r, input, stop)
}

func (s *speaker) endReply(r reply, input int64, stop model.Stop) {
	usage := r.usage
	if usage == nil {
		usage = &model.Usage{InputTokens: input, OutputTokens: tokenCount(s.runes)}
	}
	s.yield(model.Chunk{Usage: usage, Stop: stop}, nil)
}

// sendPart sends one part; false ends the reply.
func (s *speaker) sendPart(p part) bool {
	if p.fail != nil {
		if p.once > 0 && !s.once(p.once) {
			return true
		}
		s.yield(model.Chunk{}, p.fail)
		return false
	}
	if p.thought && !s.summaries {
		return true
	}
	if p.wait > 0 && !s.waitUntil(time.Now().Add(p.wait)) {
		return false
	}
	var start time.Time
	if p.rate > 0 {
		start = time.Now()
	}
	for i := p.from; i < p.n && s.left != 0 && !s.stop.found; i++ {
		due := start
		if p.rate > 0 {
			due = start.Add(time.Duration(float64(i-p.from) * 1e9 / p.rate))
		}
		switch {
		case !s.waitUntil(due):
			return false
		case p.thought && !s.yield(model.Chunk{Summary: p.delta(i)}, nil):
			return false
		case !p.thought && !s.sendDelta(p.delta(i)):
			return false
		}
	}
	return true
}

// sendDelta sends one delta, up to the text at which the reply ends.
func (s *speaker) sendDelta(d string) bool { return s.sendText(s.stop.cutText(d)) }

// sendText sends a text, or as much of it as the limit allows.
func (s *speaker) sendText(d string) bool {
	n := utf8.RuneCountInString(d)
	if s.left >= 0 && n > s.left {
		cut := 0
		for range s.left {
			_, size := utf8.DecodeRuneInString(d[cut:])
			cut += size
		}
		d, n = d[:cut], s.left
	}
	s.runes += n
	if s.left > 0 {
		s.left -= n
	}
	return d == "" || s.yield(model.Chunk{Text: d}, nil)
}

// waitUntil waits for a point in time. If that has passed, it only checks whether the request has
// ended.
func (s *speaker) waitUntil(due time.Time) bool {
	d := time.Duration(0)
	if !due.IsZero() {
		d = time.Until(due)
	}
	if d <= 0 {
		if s.ctx.Err() != nil {
			s.yield(model.Chunk{}, context.Cause(s.ctx))
			return false
		}
		return true
	}
	if s.timer == nil {
		s.timer = time.NewTimer(d)
	} else {
		s.timer.Reset(d)
	}
	select {
	case <-s.ctx.Done():
		s.yield(model.Chunk{}, context.Cause(s.ctx))
		return false
	case <-s.timer.C:
		return true
	}
}

func tokenCount(runes int) int64 { return int64((runes + runesPerToken - 1) / runesPerToken) }

// inputTokens estimates the input tokens that a provider would count.
func inputTokens(req model.Request) int64 {
	n := utf8.RuneCountInString(req.System) + utf8.RuneCountInString(req.Partial)
	for _, m := range req.Messages {
		n += utf8.RuneCountInString(m.Text)
		for _, c := range m.Calls {
			n += utf8.RuneCountInString(c.Tool) + utf8.RuneCount(c.Input)
		}
	}
	for _, t := range req.Tools {
		n += utf8.RuneCountInString(t.Name) + utf8.RuneCountInString(t.Description) + utf8.RuneCount(t.Schema)
	}
	return tokenCount(n)
}
