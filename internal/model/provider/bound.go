package provider

import (
	"fmt"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// The limits of one reply. Text and arguments are counted in bytes. A reply that exceeds one of
// them fails, because truncation could change its meaning.
const (
	maxText      = 1 << 20
	maxArguments = 1 << 20 // for one tool call
	maxCalls     = 100
	maxReply     = 4 << 20 // text, arguments and reasoning together
	maxEvent     = 8 << 20 // for one event of the stream
)

// Bound measures a reply while it arrives, so that no more than the limit is kept. Its zero value
// is ready to use.
type Bound struct {
	text, calls, total int
	exceeded           string // the first limit that the reply exceeds
}

// AddText counts text of the reply.
func (b *Bound) AddText(text string) {
	b.text += len(text)
	b.addBytes(len(text))
	b.checkLimit(b.text, maxText, "bytes of text")
}

// AddCall counts a tool call.
func (b *Bound) AddCall() {
	b.calls++
	b.checkLimit(b.calls, maxCalls, "tool calls")
}

// AddArguments counts a piece of the arguments of a call; whole is the number of bytes of the
// arguments including the piece.
func (b *Bound) AddArguments(piece string, whole int) {
	b.addBytes(len(piece))
	b.checkLimit(whole, maxArguments, "bytes of arguments in a tool call")
}

// AddReasoning counts bytes of reasoning.
func (b *Bound) AddReasoning(n int) { b.addBytes(n) }

func (b *Bound) addBytes(n int) {
	b.total += n
	b.checkLimit(b.total, maxReply, "bytes")
}

func (b *Bound) checkLimit(n, limit int, unit string) {
	if n > limit && b.exceeded == "" {
		b.exceeded = fmt.Sprintf("%d %s", limit, unit)
	}
}

// Exceeded returns an error if the reply is too large, or nil.
func (s Service) Exceeded(b *Bound) error {
	if b.exceeded == "" {
		return nil
	}
	return s.tooLarge(b.exceeded)
}

// tooLarge returns an error that is not retryable: the model would be paid for the same reply
// again.
func (s Service) tooLarge(limit string) *model.Error {
	return &model.Error{
		Code: event.ModelError, Model: s.FullName(),
		Message: fmt.Sprintf("The reply of the agent's model has more than %s, the most that is accepted. Ask for less at once.", limit),
	}
}
