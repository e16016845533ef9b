package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

// Ending describes how a turn ends: by Complete, Fail or Cancel.
type Ending struct {
	Trigger Trigger
	Failure *event.Error // nil for Complete
	Epoch   int64        // the worker's lease; 0 if the caller has none
	Halted  bool         // no worker has to be stopped
	By      []byte       // the request that cancels the turn; nil: none

	Rest        []event.Body    // earlier events that are not stored yet, for Complete
	Structured  json.RawMessage // the final answer, if the turn has a schema
	Attachments []event.File    // files that the turn produced
}

// interruptedOutcome returns the result of a tool call that the end of the turn interrupted.
func (e Ending) interruptedOutcome() string {
	if e.Trigger == Cancel {
		return "canceled"
	}
	return "interrupted, outcome unknown"
}

// Closing holds the data that the end of a turn depends on.
type Closing struct {
	HasFiles     bool // it produced files
	HasCallbacks bool // its end is reported
	turn         Turn
	state        State // now
	sum          summary
}

// ReadClosing reads the data that the end of a turn depends on.
func (tx *Tx) ReadClosing(ctx context.Context, t Turn) (c Closing, err error) {
	log, err := tx.q.TurnEvents(ctx, t.SessionID, t.ID, t.CreatedAt.Add(-eventlog.Skew))
	if err != nil {
		return c, fmt.Errorf("read the turn's log: %w", err)
	}
	c.turn = t
	if len(log) == 0 {
		return c, fmt.Errorf("turn %s has no events in the log", t.ID)
	}
	c.state, c.HasFiles, c.HasCallbacks = State(log[0].State), log[0].HasFiles, log[0].HasCallbacks
	c.sum, err = summarizeLog(log)
	return c, err
}

// EndTurn closes a turn with its last events: results of the tool calls without one, usage, the
// structured answer or the error, the attachments, and done. A turn ends once; for every later call
// ok is false.
func (tx *Tx) EndTurn(ctx context.Context, c Closing, e Ending) (ok bool, err error) {
	if e.Epoch != 0 && e.Epoch != tx.row.Epoch || !slices.Contains(e.Trigger.fromStates(), string(c.state)) {
		return false, nil
	}
	if e.Trigger == Cancel { // no other trigger ends a waiting turn
		if err := tx.later.ApprovalsCancel(ctx, c.turn.ID); err != nil {
			return false, fmt.Errorf("close the turn's question: %w", err)
		}
	}
	turn, answer, err := tx.recordEnding(ctx, &c, e)
	if err != nil {
		return false, err
	}
	if err := tx.later.TurnEnd(ctx, turn); err != nil {
		return false, fmt.Errorf("end turn: %w", err)
	}
	tx.unsaved, tx.active = false, tx.active && c.state == LinedUp
	if err := tx.later.MessageClose(ctx, answer); err != nil {
		return false, fmt.Errorf("close message: %w", err)
	}
	tx.OnCommit(func() { tx.s.reportFinish(ctx, c.finishedOf(e)) })
	return true, nil
}

// recordEnding records the last events of a turn and returns the data to store of it and of the
// agent's message.
func (tx *Tx) recordEnding(ctx context.Context, c *Closing, e Ending) (p db.TurnEndParams, answer db.MessageCloseParams, err error) {
	id := c.turn.ID
	if tx.row.TurnID != nil && *tx.row.TurnID == id { // else another turn's worker writes
		tx.raiseFence()
	}
	rows, err := tx.recordLastEvents(ctx, c, e)
	if err != nil {
		return p, answer, err
	}
	p = db.TurnEndParams{
		ID: id, State: string(e.Trigger.nextState()), Was: string(c.state), Halted: e.Halted, CanceledBy: e.By,
		SessionID: tx.row.ID, At: rows.At, Ord: rows.Ord, Seqs: rows.Seqs, Kinds: rows.Kinds, Datas: rows.Datas,
		Epoch: tx.row.Epoch, LastSeq: tx.log.Seq, LastOrd: tx.log.Ord, TurnID: tx.row.TurnID,
	}
	if e.Failure != nil {
		p.Error = new(string(e.Failure.Code))
	}
	if u := c.sum.Usage; u != nil {
		p.Input, p.Output, p.Cost = u.InputTokens, u.OutputTokens, u.CostUSD
	}
	answer, err = tx.answerMessage(c, e)
	return p, answer, err
}

// recordLastEvents records the last events of a turn: the events that are not stored yet, and its
// ending.
func (tx *Tx) recordLastEvents(ctx context.Context, c *Closing, e Ending) (rows eventlog.Rows, err error) {
	if len(e.Rest) > 0 {
		var evs []event.Event
		if evs, rows, err = tx.assignPlaces(ctx, c.turn.ID, e.Rest); err != nil {
			return rows, err
		}
		for i, ev := range evs {
			c.sum.addEvent(ev.Seq, e.Rest[i])
		}
	}
	_, end, err := tx.assignPlaces(ctx, c.turn.ID, append(c.sum.endingEvents(e), event.Done{SessionID: tx.row.ID}))
	if err != nil || len(e.Rest) == 0 {
		return end, err
	}
	rows.Seqs, rows.Kinds, rows.Datas = slices.Concat(rows.Seqs, end.Seqs), append(rows.Kinds, end.Kinds...), append(rows.Datas, end.Datas...)
	return rows, nil
}

// endingEvents lists the last events of a turn except done.
func (sum *summary) endingEvents(e Ending) []event.Body {
	last := sum.cutOff(e.interruptedOutcome())
	if sum.Usage != nil {
		last = append(last, *sum.Usage)
	}
	if e.Structured != nil {
		last = append(last, event.Structured{Result: e.Structured})
	}
	if e.Failure != nil {
		last = append(last, *e.Failure)
	}
	if len(e.Attachments) > 0 {
		last = append(last, event.Attachment{Attachments: e.Attachments})
	}
	return last
}

// answerMessage returns the agent's message of a turn that has ended.
func (tx *Tx) answerMessage(c *Closing, e Ending) (msg db.MessageCloseParams, err error) {
	t, sum := c.turn, c.sum
	msg = db.MessageCloseParams{TurnID: t.ID, SessionID: t.SessionID, Replies: sum.Replies, Status: string(e.Trigger.nextState()),
		Since: t.CreatedAt.Add(-eventlog.Skew), LastSeq: tx.Head(), StructuredResult: e.Structured}
	if e.Failure != nil {
		msg.Failure, msg.Error = &e.Failure.Message, new(string(e.Failure.Code))
	}
	if len(e.Attachments) > 0 {
		if msg.Attachments, err = json.Marshal(e.Attachments); err != nil {
			return msg, fmt.Errorf("encode attachments: %w", err)
		}
	}
	if msg.ToolCalls, err = json.Marshal(sum.ToolCalls); err != nil {
		return msg, fmt.Errorf("encode tool calls: %w", err)
	}
	if msg.Refs, err = json.Marshal(sum.References); err != nil {
		return msg, fmt.Errorf("encode references: %w", err)
	}
	if sum.Usage != nil {
		if msg.Usage, err = json.Marshal(sum.Usage); err != nil {
			return msg, fmt.Errorf("encode usage: %w", err)
		}
	}
	return msg, nil
}
