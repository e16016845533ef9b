package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// MaxLinedUp is how many messages may wait for a session's turn to end.
const MaxLinedUp = 8

// NewTurn holds the initial data of a turn.
type NewTurn struct {
	ID                 uuid.UUID
	Message            event.Message
	Labels             Labels
	Named              string   // the sender's name for the message; "" if unnamed
	Key                string   // id of the API key
	Scopes             []string // scopes of that key
	RequestHash        []byte   // hash of the original request, to recognize a repeat
	MaxResponseSeconds int      // the version of the agent can only lower it, and the next two
	MaxTurns           int
	MaxCostUSD         *float64 // nil: no limit

	AgentVersion uuid.UUID // id of the version that runs; uuid.Nil: the published one of the default agent
	SkillVersion int       // version of the skill; 0: no skill

	Prompt   []byte          // sealed: the model's input in place of the message; nil: the message itself
	Schema   json.RawMessage // schema of the final answer; nil: any answer
	Tools    json.RawMessage // the caller's own tools; nil: none
	Options  json.RawMessage // what the caller chose; nil: nothing
	Origin   []byte          // the request that sent the message; nil: unknown
	Supplied *event.Supplied // what the caller sent as context; nil: nothing
	Secrets  []string        // names of credentials that the run may use
	Rejected json.RawMessage // attachments that were refused; nil: none
	Callback uuid.UUID       // callback that reports its end; uuid.Nil: none
	Behind   bool            // line up if the session has a turn that has not ended

	Job Job // the job that will run it once it is queued
}

// Job is a River job that runs a turn.
type Job struct {
	Args []byte    // JSON
	Due  time.Time // earliest start
}

// ActiveTurn is the detail of TURN_IN_PROGRESS: where to read or end the turn that blocks the
// request. The protocol adds its URLs.
type ActiveTurn struct {
	TurnID    uuid.UUID `json:"turn_id"`
	SessionID uuid.UUID `json:"-"`
	Status    State     `json:"status"`
	LastSeq   int64     `json:"last_seq"`
	EventsURL string    `json:"events_url"`
	CancelURL string    `json:"cancel_url"`
	Pending   *Pending  `json:"pending"`
}

// ActiveTurn returns the turn of the session that is in progress, if any.
func (tx *Tx) ActiveTurn(ctx context.Context) (t Turn, ok bool, err error) {
	if !tx.active {
		return t, false, nil
	}
	row, err := tx.q.TurnActive(ctx, tx.row.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("look for a running turn: %w", err)
	}
	return turnOf(row), true, nil
}

// placeTurn finds the state in which a new turn begins.
func (tx *Tx) placeTurn(ctx context.Context, behind bool) (State, error) {
	active, ok, err := tx.ActiveTurn(ctx)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return Queued, nil
	case behind:
		n, err := tx.q.TurnsLinedUp(ctx, tx.row.ID)
		if err != nil {
			return "", fmt.Errorf("count the messages that wait: %w", err)
		}
		if n >= MaxLinedUp {
			return "", fault.New(fault.QueueFull, "This session already has %d waiting messages. Try again after one of them is answered.", n)
		}
		return LinedUp, nil
	}
	pending, err := tx.pendingQuestion(ctx, active.ID)
	if err != nil {
		return "", err
	}
	return "", &fault.Error{Code: fault.TurnInProgress,
		Message: "This session is still answering an earlier message. Wait for its done, cancel it, " +
			"or send the message with the multitask_strategy enqueue or interrupt.",
		Detail: fault.Detail{Turn: &ActiveTurn{TurnID: active.ID, SessionID: tx.row.ID, Status: State(active.State),
			LastSeq: tx.Head(), Pending: pending}}}
}

// Begin starts a turn: its row, the two messages, and its first events. It returns the beginning of
// the turn's stream, just before its open event, and whether the turn is queued. While the session
// has a turn that has not ended, a new one lines up behind it, or fails with TURN_IN_PROGRESS. In
// an erased session it fails with SESSION_NOT_FOUND. The queued turn has its job.
func (tx *Tx) Begin(ctx context.Context, n NewTurn) (from eventlog.From, queued bool, err error) {
	if tx.row.ErasedAt != nil {
		return eventlog.From{}, false, Erased(tx.row.ID)
	}
	state, err := tx.placeTurn(ctx, n.Behind)
	if err != nil {
		return eventlog.From{}, false, err
	}
	n.Message.Content = event.Plain(n.Message.Content)
	first := []event.Body{n.Message, event.Open{SessionID: tx.row.ID}}
	if n.Rejected != nil {
		first = append(first, event.AttachmentRejected{Attachments: n.Rejected})
	}
	if n.Supplied != nil {
		first = append(first, *n.Supplied)
	}
	evs, rows, err := tx.assignPlaces(ctx, n.ID, first)
	if err != nil {
		return eventlog.From{}, false, err
	}
	if state == LinedUp {
		tx.linedUp = true
	} else {
		tx.setCurrentTurn(n.ID)
	}
	tx.row.Title = cmp.Or(tx.row.Title, Title(cmp.Or(n.Message.Label, n.Message.Content)))
	tx.setLabels(&n)
	message, open, row := evs[0], evs[1], &tx.row
	p := db.TurnBeginParams{
		ID: n.ID, SessionID: row.ID, WorkspaceID: row.WorkspaceID, State: string(state), AgentVersionID: idOrNil(n.AgentVersion),
		MaxResponseSeconds: int32(n.MaxResponseSeconds), MaxTurns: int32(n.MaxTurns), MaxCostUSD: n.MaxCostUSD,
		KeyID: nilIfEmpty(n.Key), Scopes: nonNilList(n.Scopes), RequestHash: n.RequestHash,
		Prompt: n.Prompt, ResponseSchema: n.Schema, Secrets: nonNilList(n.Secrets), Rejected: n.Rejected, CallbackID: idOrNil(n.Callback),
		StartSeq:  open.Seq,
		MessageID: uuid.Must(uuid.NewV7()), AnswerID: uuid.Must(uuid.NewV7()), MessageSeq: message.Seq,
		Content: &n.Message.Content, Label: nilIfEmpty(n.Message.Label), Skill: nilIfEmpty(n.Message.Skill), Named: nilIfEmpty(n.Named),
		At: rows.At, Ord: rows.Ord, Seqs: rows.Seqs, Kinds: rows.Kinds, Datas: rows.Datas,
		Epoch: row.Epoch, LastSeq: tx.log.Seq, LastOrd: tx.log.Ord, TurnID: row.TurnID, Title: row.Title,
		EndUser: row.EndUser, Metadata: row.Metadata, TurnUser: nilIfEmpty(n.Labels.User), TurnMetadata: n.Labels.encodeMetadata(),
		Tools: n.Tools, Options: n.Options, Origin: n.Origin,
	}
	if n.SkillVersion > 0 {
		p.SkillVersion = new(int32(n.SkillVersion))
	}
	if state == Queued {
		p.Args, p.Due = n.Job.Args, n.Job.Due
	}
	if err := tx.later.TurnBegin(ctx, p); err != nil {
		return eventlog.From{}, false, fmt.Errorf("begin turn: %w", err)
	}
	tx.unsaved = false
	from = eventlog.From{Session: row.ID, Seq: open.Seq - 1, Since: tx.log.At}
	tx.s.events.Expect(from) // before the commit: afterwards a worker may write at once
	return from, state == Queued, nil
}

// IsNew reports whether the session has no events yet.
func (tx *Tx) IsNew() bool { return tx.row.LastOrd == 0 }

// setCurrentTurn makes a turn the session's turn in progress.
func (tx *Tx) setCurrentTurn(turn uuid.UUID) {
	tx.row.TurnID, tx.active, tx.unsaved = &turn, true, true
}

// Next queues the first turn that is lined up; the caller gives it a job. ok is false if none is
// lined up, or if the session has a turn in progress.
func (tx *Tx) Next(ctx context.Context) (turn uuid.UUID, ok bool, err error) {
	if !tx.linedUp {
		return uuid.Nil, false, nil
	}
	turn, err = tx.q.TurnNext(ctx, tx.row.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("look for the next turn: %w", err)
	}
	if ok, err = tx.queueTurn(ctx, turn, Advance); err != nil || !ok {
		return turn, false, err
	}
	tx.setCurrentTurn(turn)
	return turn, true, nil
}

// queueTurn moves a turn to the state in which a worker may claim it.
func (tx *Tx) queueTurn(ctx context.Context, turn uuid.UUID, t Trigger) (ok bool, err error) {
	n, err := tx.q.TurnQueue(ctx, turn, t.fromStates())
	tx.active = tx.active || n > 0
	if err != nil {
		return false, fmt.Errorf("queue turn: %w", err)
	}
	return n > 0, nil
}

// ReleaseTurn takes a running turn from its worker: a stopping node returns it, or a reaper takes
// it from a dead node. ok is false if the lease is not the newest.
func (tx *Tx) ReleaseTurn(ctx context.Context, l eventlog.Lease, why event.AttemptReason) (ok bool, err error) {
	n, err := tx.q.TurnRequeue(ctx, l.Turn, l.Epoch, string(why), Release.fromStates())
	if err != nil {
		return false, fmt.Errorf("release turn: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	tx.raiseFence()
	return true, nil
}

// EnqueueJob inserts the job of a queued turn.
func (tx *Tx) EnqueueJob(ctx context.Context, turn uuid.UUID, job Job) error {
	if err := tx.later.TurnEnqueue(ctx, turn, job.Args, job.Due); err != nil {
		return fmt.Errorf("insert the turn's job: %w", err)
	}
	return nil
}

// Title shortens a message to one line of at most 80 characters.
func Title(s string) string { return text.Truncate(strings.Join(strings.Fields(s), " "), 79) }

// nonNilList returns s, or an empty slice for nil, so that the column is never NULL.
func nonNilList(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func idOrNil(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
