package session

import (
	"context"

	"github.com/parley-server/parley/internal/event"
)

// Finished describes a turn that has ended, for the log and the metrics of the service.
type Finished struct {
	Turn     Turn // as it was before
	State    State
	Error    event.Code   // "": none
	Usage    *event.Usage // nil: no reply was complete
	Steps    int          // complete replies of the model
	Tools    int          // tool calls
	Attempts int          // workers that took the turn
}

// OnFinish calls f after the commit of each end of a turn that this process makes, with the context of
// the change. Set it before the first turn ends.
func (s *Store) OnFinish(f func(context.Context, Finished)) { s.onFinish = f }

// reportFinish passes an end that is committed to the function of OnFinish.
func (s *Store) reportFinish(ctx context.Context, e Finished) {
	if s.onFinish != nil {
		s.onFinish(ctx, e)
	}
}

// finishedOf describes the end of a turn whose last events are recorded.
func (c *Closing) finishedOf(e Ending) Finished {
	f := Finished{Turn: c.turn, State: e.Trigger.nextState(), Usage: c.sum.Usage,
		Steps: len(c.sum.Replies), Tools: len(c.sum.ToolCalls), Attempts: c.sum.Attempts}
	if e.Failure != nil {
		f.Error = e.Failure.Code
	}
	return f
}
