package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

// Pending describes the question that a turn waits for.
type Pending struct {
	Kind       event.Input `json:"kind"`
	ApprovalID uuid.UUID   `json:"approval_id"`
	ExpiresAt  time.Time   `json:"expires_at"`
}

// IsForUser reports whether a user answers the question, and not a program; false for nil.
func (p *Pending) IsForUser() bool {
	return p != nil && (p.Kind == event.InputApproval || p.Kind == event.InputSecret || p.Kind == event.InputConnect)
}

// pendingQuestion returns the question that a turn waits for, or nil.
func (tx *Tx) pendingQuestion(ctx context.Context, turn uuid.UUID) (*Pending, error) {
	row, err := tx.q.ApprovalPending(ctx, turn)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what the turn waits for: %w", err)
	}
	return &Pending{event.Input(row.Kind), row.ID, row.ExpiresAt.UTC()}, nil
}

// ParkTurn stops a turn, after the running time ran, until its question is answered or window has
// passed. The question, its event and the turn's state are one commit, so every reader of the event
// can answer it. ok is false if the lease is not the newest.
func (tx *Tx) ParkTurn(
	ctx context.Context, l eventlog.Lease, ran time.Duration, ask event.Question, window time.Duration,
) (asked event.Event, ok bool, err error) {
	n, err := tx.q.TurnPark(ctx, l.Turn, l.Epoch, ran.Seconds(), Park.fromStates())
	if err != nil {
		return asked, false, fmt.Errorf("park turn: %w", err)
	}
	if n == 0 || l.Epoch != tx.row.Epoch {
		return asked, false, nil
	}
	tx.raiseFence()
	id, kind := ask.Wait()
	expires, err := tx.q.ApprovalInsert(ctx, db.ApprovalInsertParams{
		ID: id, WorkspaceID: tx.row.WorkspaceID, SessionID: tx.row.ID, TurnID: l.Turn,
		Kind: string(kind), WindowSeconds: window.Seconds(),
	})
	if err != nil {
		return asked, false, fmt.Errorf("insert approval: %w", err)
	}
	evs, err := tx.Append(ctx, l.Turn, ask.Expiring(expires.UTC()))
	if err != nil {
		return asked, false, err
	}
	if err := tx.later.ApprovalRequest(ctx, id, evs[0].Data, evs[0].Seq); err != nil {
		return asked, false, fmt.Errorf("store the question: %w", err)
	}
	return evs[0], true, nil
}

// DecideQuestion answers a question and queues its turn; the caller inserts the job. The first
// answer before the expiry wins; for every other call ok is false.
func (tx *Tx) DecideQuestion(ctx context.Context, turn uuid.UUID, d event.Decision) (ok bool, err error) {
	_, err = tx.q.ApprovalDecide(ctx, db.ApprovalDecideParams{
		ID: d.ApprovalID, Status: string(d.Outcome), DecidedBy: &d.Key, Actor: nilIfEmpty(d.Actor), Reason: nilIfEmpty(d.Reason),
		Pattern: nilIfEmpty(d.Pattern),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("decide approval: %w", err)
	}
	return true, tx.storeDecision(ctx, turn, d)
}

// ExpireQuestion answers a question that has expired. ok is false if it has not expired, or if
// another answer came first.
func (tx *Tx) ExpireQuestion(ctx context.Context, turn uuid.UUID, d event.Decision) (ok bool, err error) {
	n, err := tx.q.ApprovalExpire(ctx, d.ApprovalID)
	if err != nil {
		return false, fmt.Errorf("expire approval: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	d.Outcome = event.Expired
	return true, tx.storeDecision(ctx, turn, d)
}

// storeDecision stores the answer and lets the turn continue.
func (tx *Tx) storeDecision(ctx context.Context, turn uuid.UUID, d event.Decision) error {
	if _, err := tx.Append(ctx, turn, d); err != nil {
		return err
	}
	ok, err := tx.queueTurn(ctx, turn, Resume)
	if err == nil && !ok {
		err = fmt.Errorf("turn %s has a question but does not wait", turn)
	}
	return err
}
