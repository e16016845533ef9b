package openai

import (
	"cmp"

	"github.com/parley-server/parley/internal/event"
)

// acts are the calls of a turn, as far as it must be told that one of them was not done.
type acts struct {
	summary map[string]string // by the call
	asked   []event.Operation // of the newest question
	denied  map[string]string // why a call was not done
}

// row takes note of a row, also of one that is not told. What it gives is the outcome of a call
// that was denied or has failed; "" of everything else.
func (a *acts) row(body event.Body) string {
	switch b := body.(type) {
	case event.InputRequired:
		a.asked = b.Operations
	case event.Decision:
		why := "denied"
		switch b.Outcome {
		case event.Denied:
		case event.Expired:
			why = "nobody answered in time"
		default:
			return ""
		}
		if a.denied == nil {
			a.denied = make(map[string]string)
		}
		for _, op := range a.asked {
			a.denied[op.ToolUseID] = why
		}
	case event.ToolUse:
		if a.summary == nil {
			a.summary = make(map[string]string)
		}
		a.summary[b.ToolUseID] = b.Summary
	case event.ToolResult:
		summary, known := a.summary[b.ToolUseID]
		switch {
		case b.OK || !known:
		default:
			return summary + ": " + cmp.Or(a.denied[b.ToolUseID], "failed")
		}
	}
	return ""
}
