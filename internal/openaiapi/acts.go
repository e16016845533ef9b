package openaiapi

import "github.com/parley-server/parley/internal/event"

// acts are the calls of a turn, as far as it must be told that one of them was not done.
type acts struct {
	summary map[string]string // by the call
	asked   []event.Operation // of the newest question
	denied  map[string]bool
}

// row takes note of a row, also of one that is not told. What it gives is the outcome of a call
// that was denied or has failed; "" of everything else.
func (a *acts) row(body event.Body) string {
	switch b := body.(type) {
	case event.InputRequired:
		a.asked = b.Operations
	case event.Decision:
		if b.Outcome != event.Denied && b.Outcome != event.Expired {
			return ""
		}
		if a.denied == nil {
			a.denied = make(map[string]bool)
		}
		for _, op := range a.asked {
			a.denied[op.ToolUseID] = true
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
		case a.denied[b.ToolUseID]:
			return summary + ": denied"
		default:
			return summary + ": failed"
		}
	}
	return ""
}
