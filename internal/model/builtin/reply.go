package builtin

import (
	"strings"
	"time"
	"unicode"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// The pace of ordinary answers: fast, but visibly a stream.
const wordsPerSecond = 200

// reply is the guide's output in one step.
type reply struct {
	parts []part
	calls []event.ToolCall
	stop  model.Stop   // "": tools if there are calls, else end
	usage *model.Usage // nil: an estimate
}

// part is a piece of a reply: deltas of text, or a pause, or a failure.
type part struct {
	from, n int                // the deltas that are still to be sent
	delta   func(i int) string // text of the i-th
	rate    float64            // deltas a second; 0 is as fast as the reader can
	thought bool               // the deltas are a summary of reasoning, not text
	stamped int                // size of a delta that carries its time of emission, 0 for others

	wait time.Duration
	fail *model.Error
	once int // a failure with a number greater than 0 happens only the first time
}

// splitWords returns text that is sent word by word.
func splitWords(text string, rate float64) part {
	deltas := splitBlanks(text)
	return part{n: len(deltas), delta: func(i int) string { return deltas[i] }, rate: rate}
}

// sayText returns a reply of text at the ordinary pace.
func sayText(text string) reply { return reply{parts: []part{splitWords(text, wordsPerSecond)}} }

// splitBlanks cuts a text after every run of blanks.
func splitBlanks(text string) []string {
	var deltas []string
	start, blank := 0, false
	for i, r := range text {
		if unicode.IsSpace(r) {
			blank = true
		} else if blank {
			deltas = append(deltas, text[start:i])
			start, blank = i, false
		}
	}
	if start < len(text) {
		deltas = append(deltas, text[start:])
	}
	return deltas
}

// withoutPrefix returns the rest of a reply after partial has been sent. Text that is not the
// beginning of this reply was another model's: then the whole reply follows, after a blank line.
func (r reply) withoutPrefix(partial string) reply {
	rest := partial
	for k, p := range r.parts {
		if p.delta == nil || p.thought {
			if rest == "" {
				return r.withParts(r.parts[k:]...)
			}
			continue
		}
		for i := p.from; i < p.n; i++ {
			if rest == "" {
				p.from = i
				return r.withParts(append([]part{p}, r.parts[k+1:]...)...)
			}
			said, ok := p.sentBytes(i, rest)
			if !ok {
				return r.withParts(append([]part{splitWords("\n\n", 0)}, r.parts...)...)
			}
			if size := len(event.Plain(p.delta(i))); said < size {
				p.from = i + 1
				return r.withParts(append([]part{p.restOf(i, said), p}, r.parts[k+1:]...)...)
			}
			rest = rest[said:]
		}
	}
	return r.withParts()
}

func (r reply) withParts(parts ...part) reply {
	r.parts = parts
	return r
}

// sentBytes returns how many bytes of the i-th delta are at the beginning of shown. The log
// contains plain text, whatever the delta contains.
func (p part) sentBytes(i int, shown string) (n int, ok bool) {
	if p.stamped > 0 {
		return saidStamp(i, p.stamped, shown)
	}
	d := event.Plain(p.delta(i))
	if len(shown) < len(d) {
		return len(shown), strings.HasPrefix(d, shown)
	}
	return len(d), strings.HasPrefix(shown, d)
}

// restOf returns the rest of the i-th delta after n bytes have been sent.
func (p part) restOf(i, n int) part {
	return part{n: 1, delta: func(int) string { return event.Plain(p.delta(i))[n:] }}
}
