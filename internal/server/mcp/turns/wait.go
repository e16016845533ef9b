package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/mcp/tools"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// wait is a call that waits for the outcome of a turn.
type wait struct {
	Tools
	call     *tools.Call
	started  turn.Started
	keyed    bool      // a repeated call finds its turn
	plain    bool      // questions are part of the result and never sent to the client as a form
	past     bool      // the turn has ended, and others followed it
	decision bool      // the call has answered a question and sent no message
	after    uuid.UUID // the answered question; rows before it were sent
	notice   string    // unexpected outcome of an answer that came with the call
}

// awaitResult waits for the end of the turn or for its first unanswered question.
func (w *wait) awaitResult(ctx context.Context) (tools.Result, error) {
	ctx, stop := w.Keys.While(ctx, w.call.Caller.Key)
	defer stop()
	p := newProgress(ctx, w.call)
	defer w.call.KeepAlive()()
	defer p.keepAlive(w.Keepalive)()
	if !w.past {
		p.sendSession(w.started.Session)
		question, err := w.followTurn(ctx, p)
		if err != nil {
			return tools.Result{}, w.interruptedError(ctx, err)
		}
		if question != nil {
			return w.questionResult(ctx, question.Data, question.Seq)
		}
	}
	o, err := w.TurnOutcome(ctx, w.call.Caller, w.started.Turn)
	if err != nil {
		return tools.Result{}, w.interruptedError(ctx, err)
	}
	return w.resultOf(o), nil
}

// followTurn reports progress until the turn asks an unanswered question or ends; then it returns
// nil. The events of a turn that has ended may be removed: its outcome is still stored.
func (w *wait) followTurn(ctx context.Context, p *progress) (*server.Row, error) {
	reading := server.Reading{Turn: w.started.Turn, From: w.started.From, After: w.after, Tools: true}
	for rows, err := range w.TurnRows(ctx, w.call.Caller, reading) {
		if errors.Is(err, eventlog.ErrGone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if !row.Seen {
				p.reportEvent(row.Body)
			}
			if row.Pending {
				return &row, nil
			}
		}
		p.flush()
	}
	return nil, nil
}

// questionResult returns the turn's question as a result, or as a form for the client's user.
func (w *wait) questionResult(ctx context.Context, data json.RawMessage, seq int64) (tools.Result, error) {
	q, err := parseQuestion(data)
	if err != nil {
		return tools.Result{}, err
	}
	if q.What == event.InputApproval && !w.plain && canElicit(w.call) {
		return elicitationResult(q, seq, w.notice), nil
	}
	ctx, cancel := w.Brief(ctx)
	defer cancel()
	o, err := w.Turns.Asking(ctx, w.call.Caller.Workspace.ID, w.started.Turn, withAbsoluteURLs(w.call.Base, data))
	if err != nil {
		return tools.Result{}, w.interruptedError(ctx, err)
	}
	return w.resultOf(o), nil
}

// resultOf returns the result for an outcome.
func (w *wait) resultOf(o turn.Outcome) tools.Result {
	server.CompleteLinks(w.call.Base, o.Attachments)
	state, _ := w.call.Answers()
	again := w.started.Replayed && state == "" // an answer to a question arrives with the repeated call
	res := tools.Result{Value: outcome{o, again, w.notice}}
	switch {
	case o.Success && o.Output != nil:
		res.Texts = answerTexts(o)
	case o.InputRequired != nil:
		res.Texts = questionTexts(o)
	case o.ConnectRequired != nil:
		res.Texts = connectTexts(o)
	case o.ToolRequired != nil:
		res.Texts = callTexts(o)
	case o.Error != nil:
		res.Failed = true
		res.Texts = failureTexts(o)
	}
	if again {
		res.Texts = append(res.Texts, "This was sent before under the same idempotency_key, and is what came of that: nothing was sent again.")
	}
	if w.notice != "" {
		res.Texts = append([]string{w.notice}, res.Texts...)
	}
	return res
}

// outcome is the outcome of a turn, and the text of the call's result.
type outcome struct {
	turn.Outcome
	Replayed bool   `json:"replayed,omitempty"`
	Notice   string `json:"notice,omitempty"`
}

// interruptedError adds to an error that the call took effect. A client that only reads "try again"
// would send it twice.
func (w *wait) interruptedError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); fault.From(err) == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	why := w.WaitInterruption(ctx, w.started.Session, w.started.Turn, err)
	if why == "" {
		return err
	}
	taken, again := "message was accepted", "Do not send it again: it had no idempotency_key, and would start a second turn"
	switch {
	case w.decision:
		taken, again = "decision was taken", "Sent again it changes nothing and finds this turn"
	case w.keyed:
		again = "Sent again with the same idempotency_key it finds this turn"
	}
	t := &session.ActiveTurn{TurnID: w.started.Turn, SessionID: w.started.Session, Status: session.Running, LastSeq: w.started.From.Seq}
	server.Link(w.call.Base, w.call.Caller.Workspace, t)
	return &fault.Error{Code: fault.Unavailable, Detail: fault.Detail{Turn: t}, Message: fmt.Sprintf(
		"The %s and its turn continues in session %s, but this server %s and cannot wait for it. Read the answer with get_messages. %s.",
		taken, w.started.Session, why, again)}
}
