package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// MaxLinedUp is how many messages may wait for a session's turn to end.
const MaxLinedUp = 8

// NewTurn is what a turn begins with.
type NewTurn struct {
	ID                 uuid.UUID
	Message            event.Message
	Named              string   // what its sender calls the message; "": nothing
	Key                string   // id of the API key
	Scopes             []string // what that key may do
	RequestHash        []byte   // of the request as it came, to know it again
	MaxResponseSeconds int
	MaxTurns           int
	MaxCostUSD         *float64 // nil: no limit

	Prompt   []byte          // sealed: the model's input in place of the message; nil: the message itself
	Schema   json.RawMessage // what the final answer must fit; nil: anything
	Secrets  []string        // names of credentials that the run may use
	Rejected json.RawMessage // attachments that were refused; nil: none
	Callback uuid.UUID       // where its end is reported to; uuid.Nil: nowhere
	Behind   bool            // line up where the session has a turn that has not ended

	Job Job // the job that shall run it, once it is queued
}

// Job is a River job that runs a turn.
type Job struct {
	Args []byte    // JSON
	Due  time.Time // when it may run
}

// ActiveTurn is the detail of TURN_IN_PROGRESS: where to read or end the turn that
// is in the way. The way in adds its URLs.
type ActiveTurn struct {
	TurnID    uuid.UUID `json:"turn_id"`
	SessionID uuid.UUID `json:"-"`
	Status    State     `json:"status"`
	LastSeq   int64     `json:"last_seq"`
	EventsURL string    `json:"events_url"`
	CancelURL string    `json:"cancel_url"`
	Pending   *Pending  `json:"pending"`
}

// Active is the session's turn that is in progress, if there is one.
func (tx *Tx) Active(ctx context.Context) (t Turn, ok bool, err error) {
	if !tx.active {
		return t, false, nil
	}
	row, err := tx.q.TurnActive(ctx, tx.Session.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("look for a running turn: %w", err)
	}
	return turnOf(row), true, nil
}

// place finds the state in which a new turn begins.
func (tx *Tx) place(ctx context.Context, behind bool) (State, error) {
	active, ok, err := tx.Active(ctx)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return Queued, nil
	case behind:
		n, err := tx.q.TurnsLinedUp(ctx, tx.Session.ID)
		if err != nil {
			return "", fmt.Errorf("count the messages that wait: %w", err)
		}
		if n >= MaxLinedUp {
			return "", fault.New(fault.QueueFull, "This session already has %d waiting messages. Try again after one of them is answered.", n)
		}
		return LinedUp, nil
	}
	pending, err := tx.pending(ctx, active.ID)
	if err != nil {
		return "", err
	}
	return "", &fault.Error{Code: fault.TurnInProgress,
		Message: "This session is still answering an earlier message. Wait for its done, cancel it, " +
			"or send the message with the multitask_strategy enqueue or interrupt.",
		Detail: fault.Detail{Turn: &ActiveTurn{TurnID: active.ID, SessionID: tx.Session.ID, Status: State(active.State),
			LastSeq: tx.Session.LastSeq, Pending: pending}}}
}

// Begin starts a turn: its row, the two messages, and its first events. It returns
// where the turn's stream begins, just before its open event, and whether the turn
// is queued. While the session has a turn that has
// not ended, a new one lines up behind it, or fails with TURN_IN_PROGRESS. In a session
// that was erased nothing begins any more: it is SESSION_NOT_FOUND.
// The queued turn has its job.
func (tx *Tx) Begin(ctx context.Context, n NewTurn) (from From, queued bool, err error) {
	if tx.Session.ErasedAt != nil {
		return From{}, false, NotFound(tx.Session.ID)
	}
	state, err := tx.place(ctx, n.Behind)
	if err != nil {
		return From{}, false, err
	}
	n.Message.Content = event.Plain(n.Message.Content)
	first := []event.Body{n.Message, event.Open{SessionID: tx.Session.ID}}
	if n.Rejected != nil {
		first = append(first, event.AttachmentRejected{Attachments: n.Rejected})
	}
	evs, rows, err := tx.record(ctx, n.ID, first)
	if err != nil {
		return From{}, false, err
	}
	if state == LinedUp {
		tx.linedUp = true
	} else {
		tx.current(n.ID)
	}
	tx.Session.Title = cmp.Or(tx.Session.Title, Title(cmp.Or(n.Message.Label, n.Message.Content)))
	message, open, row := evs[0], evs[1], &tx.Session
	p := db.TurnBeginParams{
		ID: n.ID, SessionID: row.ID, WorkspaceID: row.WorkspaceID, State: string(state),
		MaxResponseSeconds: int32(n.MaxResponseSeconds), MaxTurns: int32(n.MaxTurns), MaxCostUSD: n.MaxCostUSD,
		KeyID: nullable(n.Key), Scopes: list(n.Scopes), RequestHash: n.RequestHash,
		Prompt: n.Prompt, ResponseSchema: n.Schema, Secrets: list(n.Secrets), Rejected: n.Rejected, CallbackID: known(n.Callback), StartSeq: open.Seq,
		MessageID: uuid.Must(uuid.NewV7()), AnswerID: uuid.Must(uuid.NewV7()), MessageSeq: message.Seq,
		Content: &n.Message.Content, Label: nullable(n.Message.Label), Skill: nullable(n.Message.Skill), Named: nullable(n.Named),
		At: rows.At, Ord: rows.Ord, Seqs: rows.Seqs, Kinds: rows.Kinds, Datas: rows.Datas,
		Epoch: row.Epoch, LastSeq: row.LastSeq, LastOrd: row.LastOrd, TurnID: row.TurnID, Title: row.Title,
	}
	if state == Queued {
		p.Args, p.Due = n.Job.Args, n.Job.Due
	}
	if err := tx.later.TurnBegin(ctx, p); err != nil {
		return From{}, false, fmt.Errorf("begin turn: %w", err)
	}
	tx.unsaved = false
	from = From{Session: row.ID, Seq: open.Seq - 1, Since: tx.now}
	tx.s.topics.hold(from) // before the commit: afterwards a worker may write at once
	return from, state == Queued, nil
}

// current makes a turn the one that is in progress.
func (tx *Tx) current(turn uuid.UUID) {
	tx.Session.TurnID, tx.active, tx.unsaved = &turn, true, true
}

// Next queues the first turn that is lined up; the caller gives it a job. ok is false
// when there is none, or when the session has a turn in progress.
func (tx *Tx) Next(ctx context.Context) (turn uuid.UUID, ok bool, err error) {
	if !tx.linedUp {
		return uuid.Nil, false, nil
	}
	turn, err = tx.q.TurnNext(ctx, tx.Session.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("look for the next turn: %w", err)
	}
	if ok, err = tx.queue(ctx, turn, Advance); err != nil || !ok {
		return turn, false, err
	}
	tx.current(turn)
	return turn, true, nil
}

// queue moves a turn to where a worker may take it.
func (tx *Tx) queue(ctx context.Context, turn uuid.UUID, t Trigger) (ok bool, err error) {
	n, err := tx.q.TurnQueue(ctx, turn, t.from())
	tx.active = tx.active || n > 0
	if err != nil {
		return false, fmt.Errorf("queue turn: %w", err)
	}
	return n > 0, nil
}

// Release takes a running turn from its worker: a node that stops gives it back, a
// reaper takes it from a dead one. ok is false when the lease is not the newest.
func (tx *Tx) Release(ctx context.Context, l Lease) (ok bool, err error) {
	n, err := tx.q.TurnRequeue(ctx, l.Turn, l.Epoch, Release.from())
	if err != nil {
		return false, fmt.Errorf("release turn: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	tx.raise()
	return true, nil
}

// Enqueue makes the job of a queued turn.
func (tx *Tx) Enqueue(ctx context.Context, turn uuid.UUID, job Job) error {
	if err := tx.later.TurnEnqueue(ctx, turn, job.Args, job.Due); err != nil {
		return fmt.Errorf("insert the turn's job: %w", err)
	}
	return nil
}

// Ending is how a turn ends: by Complete, Fail or Cancel.
type Ending struct {
	Trigger Trigger
	Failure *event.Error // nil for Complete
	Epoch   int64        // the worker's lease; 0 if the caller needs none
	Halted  bool         // no worker is left to be stopped

	Rest        []event.Body    // events that come first and are not stored yet, for Complete
	Structured  json.RawMessage // the final answer, where one in a schema was asked for
	Attachments []event.File    // what the turn produced
}

// outcome is the result of a tool call that the end of the turn cut off.
func (e Ending) outcome() string {
	if e.Trigger == Cancel {
		return "canceled"
	}
	return "interrupted, outcome unknown"
}

// Closing is what the end of a turn depends on.
type Closing struct {
	HasFiles     bool // it produced files
	HasCallbacks bool // its end is reported
	turn         Turn
	state        State // now
	sum          summary
}

// Closing reads what the end of a turn depends on.
func (tx *Tx) Closing(ctx context.Context, t Turn) (c Closing, err error) {
	log, err := tx.q.TurnEvents(ctx, t.SessionID, t.ID, t.CreatedAt.Add(-skew))
	if err != nil {
		return c, fmt.Errorf("read the turn's log: %w", err)
	}
	c.turn = t
	if len(log) == 0 {
		return c, fmt.Errorf("turn %s has no events in the log", t.ID)
	}
	c.state, c.HasFiles, c.HasCallbacks = State(log[0].State), log[0].HasFiles, log[0].HasCallbacks
	c.sum, err = summarize(log)
	return c, err
}

// End closes a turn with its last events: results of the tool calls that have none, usage, the
// structured answer or the error, the attachments, and done. A turn ends once; for
// every later call ok is false.
func (tx *Tx) End(ctx context.Context, c Closing, e Ending) (ok bool, err error) {
	if e.Epoch != 0 && e.Epoch != tx.Session.Epoch || !slices.Contains(e.Trigger.from(), string(c.state)) {
		return false, nil
	}
	if e.Trigger == Cancel { // no other leads out of Waiting to an end
		if err := tx.later.ApprovalsCancel(ctx, c.turn.ID); err != nil {
			return false, fmt.Errorf("close the turn's question: %w", err)
		}
	}
	turn, answer, err := tx.ending(ctx, &c, e)
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
	return true, nil
}

// ending records the last events of a turn and returns what is to be stored of it and of the agent's
// message.
func (tx *Tx) ending(ctx context.Context, c *Closing, e Ending) (p db.TurnEndParams, answer db.MessageCloseParams, err error) {
	id := c.turn.ID
	if tx.Session.TurnID != nil && *tx.Session.TurnID == id { // else another turn's worker writes
		tx.raise()
	}
	rows, err := tx.last(ctx, c, e)
	if err != nil {
		return p, answer, err
	}
	p = db.TurnEndParams{
		ID: id, State: string(e.Trigger.to()), Was: string(c.state), Halted: e.Halted,
		SessionID: rows.SessionID, At: rows.At, Ord: rows.Ord, Seqs: rows.Seqs, Kinds: rows.Kinds, Datas: rows.Datas,
		Epoch: tx.Session.Epoch, LastSeq: tx.Session.LastSeq, LastOrd: tx.Session.LastOrd, TurnID: tx.Session.TurnID,
	}
	if e.Failure != nil {
		p.Error = new(string(e.Failure.Code))
	}
	if u := c.sum.Usage; u != nil {
		p.Input, p.Output, p.Cost = u.InputTokens, u.OutputTokens, u.CostUSD
	}
	answer, err = tx.answer(c, e)
	return p, answer, err
}

// last records the last events of a turn: those that are not stored yet, and its ending.
func (tx *Tx) last(ctx context.Context, c *Closing, e Ending) (rows db.EventsInsertParams, err error) {
	if len(e.Rest) > 0 {
		var evs []event.Event
		if evs, rows, err = tx.record(ctx, c.turn.ID, e.Rest); err != nil {
			return rows, err
		}
		for i, ev := range evs {
			c.sum.add(ev.Seq, e.Rest[i])
		}
	}
	_, end, err := tx.record(ctx, c.turn.ID, append(c.sum.ending(e), event.Done{SessionID: tx.Session.ID}))
	if err != nil || len(e.Rest) == 0 {
		return end, err
	}
	rows.Seqs, rows.Kinds, rows.Datas = slices.Concat(rows.Seqs, end.Seqs), append(rows.Kinds, end.Kinds...), append(rows.Datas, end.Datas...)
	return rows, nil
}

// ending lists the last events of a turn but for done.
func (sum *summary) ending(e Ending) []event.Body {
	last := sum.cutOff(e.outcome())
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

// answer returns the agent's message of a turn that has ended.
func (tx *Tx) answer(c *Closing, e Ending) (msg db.MessageCloseParams, err error) {
	t, sum := c.turn, c.sum
	msg = db.MessageCloseParams{TurnID: t.ID, SessionID: t.SessionID, Replies: sum.Replies, Status: string(e.Trigger.to()),
		Since: t.CreatedAt.Add(-skew), LastSeq: tx.Head(), StructuredResult: e.Structured}
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

// Title shortens a message to one line of at most 80 characters.
func Title(s string) string { return text.Truncate(strings.Join(strings.Fields(s), " "), 79) }

// list is never NULL.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func known(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
