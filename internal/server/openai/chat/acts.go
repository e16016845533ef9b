package chat

import (
	"cmp"

	"github.com/parley-server/parley/internal/event"
)

// acts records the tool calls of a turn, to report the ones that were not run.
type acts struct {
	summary map[string]string // by call
	asked   []event.Operation // the operations of the newest question
	denied  map[string]string // why a call was not run
}

// row records a row, even one that is not sent. It returns the outcome of a call that was denied or
// has failed, "" for every other row.
func (a *acts) row(body event.Body) string {
	switch b := body.(type) {
	case event.InputRequired:
		a.asked = b.Operations
	case event.Decision:
		why := "denied"
		switch b.Outcome {
		case event.Denied:
		case event.Expired:
			why = "not answered in time"
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
