package event

import (
	"cmp"
	"slices"
)

// ShownCall is a tool call in the step of an approval.
type ShownCall struct {
	Operation
	Asks bool // it needs the approval
}

// Step returns all calls of an approval in the order in which they run. A call that needs no
// approval can prepare what an approved call does, so a view that omits one misleads.
func (b InputRequired) Step() []ShownCall {
	calls := make([]ShownCall, 0, len(b.Operations)+len(b.OtherCalls))
	for _, op := range b.Operations {
		calls = append(calls, ShownCall{op, true})
	}
	for _, op := range b.OtherCalls {
		calls = append(calls, ShownCall{op, false})
	}
	slices.SortStableFunc(calls, func(a, b ShownCall) int { return cmp.Compare(a.Position, b.Position) })
	return calls
}
