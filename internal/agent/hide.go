package agent

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// A structured answer has its own event and is never shown as text. Some models also write it as
// text, unrequested, alone or after a sentence. For a turn with a schema, text that may be JSON is
// therefore held back until the reply is complete.

// isStructuredAnswer reports whether a reply, from its beginning, is an answer in a schema.
func (r *run) isStructuredAnswer(req model.Request, text string) bool {
	if req.Output != nil {
		return true
	}
	text = strings.TrimSpace(text)
	return r.Output != nil && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, fence))
}

// visibleLength returns how much of a reply can be shown; shown bytes are visible already.
func (r *run) visibleLength(req model.Request, text string, shown int) int {
	switch {
	case req.Output != nil, r.hidden:
		return shown
	case shown == 0 && strings.TrimSpace(text) == "": // it may be the whole reply, which then has no text
		return shown
	case r.Output == nil:
		return len(text)
	}
	at := shown + len(strings.TrimRight(text[shown:], "`")) // possibly the beginning of a fence
	for _, begin := range []string{"{", "[", fence} {
		if i := strings.Index(text[shown:], begin); i >= 0 {
			at = min(at, shown+i)
		}
	}
	if strings.TrimSpace(text[:at]) == "" {
		return shown
	}
	return at
}

// showRest shows the held-back text of a complete reply that is not the answer.
func (r *run) showRest(req model.Request, text string, shown int) error {
	rest := text[shown:]
	if rest == "" || r.hidden || shown == 0 && strings.TrimSpace(rest) == "" || r.isStructuredAnswer(req, text) ||
		r.Output != nil && r.Output.containsAnswer(rest) {
		return nil
	}
	return r.showText(rest, shown == 0)
}

// showText emits a piece of a reply. The text of a step begins with a break if the reader has seen
// text of an earlier step: the pieces are concatenated.
func (r *run) showText(text string, begins bool) error {
	if begins && r.shown {
		text = event.StepBreak + text
	}
	r.shown = true
	return r.emitEvents(event.Text{Text: text})
}

// maxLooks is the maximum number of brackets that are tried as the beginning of JSON in a text.
const maxLooks = 100

// containsAnswer reports whether a text contains a possible answer: a non-empty object, or a value
// that fits, even if it is cut off at the end.
func (o *Output) containsAnswer(text string) bool {
	for range maxLooks {
		i := strings.IndexAny(text, "{[")
		if i < 0 {
			return false
		}
		text = text[i:]
		var value json.RawMessage
		err := json.NewDecoder(strings.NewReader(text)).Decode(&value)
		if errors.Is(err, io.ErrUnexpectedEOF) || err == nil && (value[0] == '{' && len(compactJSON(value)) > len("{}") ||
			o.Check(value) == nil) {
			return true
		}
		text = text[1:]
	}
	return false
}
