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

func newActs() acts { return acts{summary: make(map[string]string), denied: make(map[string]string)} }

// denials are the reasons why calls are not run.
var denials = map[event.Outcome]string{event.Denied: "denied", event.Expired: "not answered in time"}

// recordRow records a row, even one that is not sent. It returns the outcome of a call that was
// denied or has failed, "" for every other row.
func (a *acts) recordRow(body event.Body) string {
	switch b := body.(type) {
	case event.InputRequired:
		a.asked = b.Operations
	case event.Decision:
		if why, ok := denials[b.Outcome]; ok {
			for _, op := range a.asked {
				a.denied[op.ToolUseID] = why
			}
		}
	case event.ToolUse:
		a.summary[b.ToolUseID] = b.Summary
	case event.ToolResult:
		if summary, known := a.summary[b.ToolUseID]; known && !b.OK {
			return summary + ": " + cmp.Or(a.denied[b.ToolUseID], "failed")
		}
	}
	return ""
}
