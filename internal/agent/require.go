package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/tool"
)

// requireResults ends the calls of the caller's own tools. The calls without a result become one
// question, which ends the run until the caller has posted the results or the time is over.
func (r *run) requireResults(ctx context.Context, s *step, calls []event.ToolCall) error {
	var open []event.PendingCall
	for _, c := range calls {
		t := r.findTool(c.Tool)
		res := r.state.postedResult(c)
		var j judgment
		if res == nil {
			var err error
			if j, err = r.refuseCall(ctx, t, c); err != nil {
				return err
			}
			res = j.refusal
		}
		if err := r.beginCall(s, t, c, j.verdict); err != nil {
			return err
		}
		if res == nil {
			open = append(open, pendingCall(c))
			continue
		}
		if err := r.emitResult(ctx, s, c, *res); err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return nil
	}
	if r.OneCall {
		open = open[:1]
	}
	return r.parkRun(event.ToolRequired{Calls: open})
}

func pendingCall(c event.ToolCall) event.PendingCall {
	return event.PendingCall{ToolUseID: c.ID, Tool: c.Tool, Input: c.Input}
}

// noteAwaited records the calls for which a question waits.
func (s *state) noteAwaited(q event.Question, calls []event.PendingCall, window time.Duration) {
	id, _ := q.Wait()
	for _, c := range calls {
		s.awaited[c.ToolUseID] = question{id: id, window: window}
	}
}

// postedResult returns the result that was posted for a call, or a failed one if the time for it is
// over; nil: neither.
func (s *state) postedResult(c event.ToolCall) *tool.Result {
	if reply, ok := s.posted[c.ID]; ok {
		return &tool.Result{OK: reply.OK, Output: reply.Output}
	}
	q, awaited := s.awaited[c.ID]
	if !awaited || s.answered[q.id].Outcome != event.Expired {
		return nil
	}
	return new(tool.Reject(fmt.Sprintf("The tool gave no result %s.", q.windowText())))
}

// awaitOf returns the function Await of a tool.Call.
func (r *run) awaitOf(c event.ToolCall) func(context.Context) error {
	return func(ctx context.Context) error {
		if r.Await == nil {
			return nil
		}
		return r.Await(ctx, c.ID)
	}
}

// isUnanswered reports whether a call of a step got no result because the time for it was over.
func (r *run) isUnanswered(s *step) bool {
	for _, c := range s.reply.Calls {
		_, posted := r.state.posted[c.ID]
		if q, awaited := r.state.awaited[c.ID]; awaited && !posted && r.state.answered[q.id].Outcome == event.Expired {
			return true
		}
	}
	return false
}
