package agent

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// The shares of the model's window, in percent. Once a request is above the first one, old results are
// masked down to the second one, so that the beginning of the next requests stays the same and can be
// cached.
const (
	maskAbove = 70
	maskTo    = 50
)

const (
	keptUnits  = 2   // newest units whose results stay
	maskedFrom = 400 // characters of the smallest result that is masked
)

// window returns the tokens that a request may have.
func (r *run) window() int {
	return cmp.Or(r.limit, r.Window, r.Catalog.Window(r.model.Name()))
}

// learnedWindow returns the limit that the newest request of the turn had; 0: none.
func (s *state) learnedWindow() (limit int) {
	if last := s.lastStep(); last != nil && last.reply.Sent != nil {
		limit = last.reply.Sent.Window
	}
	for _, c := range s.compactions { // it only falls
		if c.Window != 0 && (limit == 0 || c.Window < limit) {
			limit = c.Window
		}
	}
	return limit
}

// chooseMask returns the place up to which results are masked in the request for the step after the
// first n, and the estimated size of that request.
func (r *run) chooseMask(n int, units []unit) (*event.Place, int64) {
	masked := placeOf(units, r.maskBefore(n))
	size, past, history := r.fixed, 0, 0
	for i, u := range units {
		tokens := u.maskedTokens(i <= masked)
		size += tokens
		if u.at.Turn != r.c.Turn || u.at.Step < 0 {
			past, history = i+1, history+tokens
		}
	}
	exceeds := func(percent int) bool { return r.exceedsWindow(n, int64(size), percent) }
	crowded := func(percent int) bool { return r.c.Budget >= 0 && history > r.c.Budget*percent/maskAbove }
	for mask := exceeds(maskAbove) || crowded(maskAbove); mask && masked+1 < len(units); masked++ {
		next := masked + 1
		if !(exceeds(maskTo) && next < len(units)-keptUnits) && !(crowded(maskTo) && next < past) {
			break
		}
		saved := units[next].maskedTokens(false) - units[next].maskedTokens(true)
		if size -= saved; next < past {
			history -= saved
		}
	}
	if masked < 0 {
		return nil, int64(size)
	}
	return &units[masked].at, int64(size)
}

// maskBefore returns the mask of the request before the step after the first n; nil: it had none.
func (r *run) maskBefore(n int) *event.Place {
	if sent := r.sentBefore(n); sent != nil {
		return sent.Masked
	}
	return nil
}

// sentBefore describes the newest request before the step after the first n; nil: there is none.
func (r *run) sentBefore(n int) *event.Sent {
	for _, s := range slices.Backward(r.state.steps[:n]) {
		if s.reply.Sent != nil {
			return s.reply.Sent
		}
	}
	return r.lastSent
}

// scale relates the provider's number of tokens to the estimate.
type scale struct{ tokens, estimate int64 }

// scaleBefore returns the relation in the newest request before the step after the first n.
func (r *run) scaleBefore(n int) scale {
	sent := r.sentBefore(n)
	if sent == nil || sent.Tokens == 0 || sent.Estimate == 0 {
		return scale{1, 1}
	}
	return scale{min(max(sent.Tokens, sent.Estimate/2), sent.Estimate*4), sent.Estimate}
}

func (s scale) apply(size int) int64 { return int64(size) * s.tokens / s.estimate }

// placeOf returns the index of a unit; -1: none has the place.
func placeOf(units []unit, at *event.Place) int {
	if at == nil {
		return -1
	}
	return slices.IndexFunc(units, func(u unit) bool { return u.at == *at })
}

// maskedTokens estimates the size of a unit with or without its results.
func (u unit) maskedTokens(masked bool) int {
	if masked {
		u = u.mask()
	}
	return u.tokens()
}

// mask returns the unit with a line in place of each long result of a tool.
func (u unit) mask() unit {
	names := make(map[string]string)
	u.messages = slices.Clone(u.messages)
	for i, m := range u.messages {
		for _, c := range m.Calls {
			names[c.ID] = c.Tool
		}
		if n := utf8.RuneCountInString(m.Text); m.Role == model.ToolRole && n >= maskedFrom {
			u.messages[i].Text = fmt.Sprintf("[The result of %s (%s, %d characters) is masked. %s returns it.]", m.CallID, names[m.CallID],
				n, readResult)
		}
	}
	return u
}

// maskUnits masks the units up to a place.
func maskUnits(units []unit, upto *event.Place) []unit {
	for i := range placeOf(units, upto) + 1 {
		units[i] = units[i].mask()
	}
	return units
}
