package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
)

// Approval is a question of a turn as the inbox shows it.
type Approval struct {
	ApprovalID  uuid.UUID       `json:"approval_id"`
	Kind        event.Input     `json:"kind"`
	Status      string          `json:"status"` // pending, canceled, or an event.Outcome
	SessionID   uuid.UUID       `json:"session_id"`
	TurnID      uuid.UUID       `json:"turn_id"`
	Request     json.RawMessage `json:"request"` // data of the input_required event; null once the session is erased
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	SecondsLeft int             `json:"seconds_left"` // 0 unless it is pending
	DecidedAt   *time.Time      `json:"decided_at"`
	DecidedBy   *Decider        `json:"decided_by"` // null before an answer
	Reason      *string         `json:"reason,omitempty"`
	Pattern     *string         `json:"allowlist_pattern"`
}

// Decider identifies the API key that answered and, if known, its user.
type Decider struct {
	KeyID string `json:"key_id"`
	Actor string `json:"actor,omitempty"` // the user behind the key, as its holder names them
}

// ApprovalQuery narrows the list of a workspace's approvals.
type ApprovalQuery struct {
	Status  string     // "": all statuses
	Session *uuid.UUID // nil: all sessions
	Limit   int        // at least 1
	Cursor  string     // "": the first page
}

// Approvals returns one page of a workspace's approvals and secret requests, newest first.
func (s *Store) Approvals(ctx context.Context, workspace uuid.UUID, q ApprovalQuery) (Page[Approval], error) {
	at, id, err := q.startPosition(workspace)
	if err != nil {
		return Page[Approval]{}, err
	}
	var rows []db.ApprovalsPageRow
	settled := make(map[uuid.UUID]bool) // by session
	for again := true; again; {
		again = false
		rows, err = s.lists.ApprovalsPage(ctx, db.ApprovalsPageParams{WorkspaceID: workspace, Status: nilIfEmpty(q.Status), SessionID: q.Session,
			BeforeAt: at, BeforeID: id, N: int32(q.Limit) + 1})
		if err != nil {
			return Page[Approval]{}, fmt.Errorf("list approvals: %w", err)
		}
		for _, r := range rows {
			if id := r.Approval.SessionID; r.Overdue && !settled[id] {
				if err := s.awaitAnswers(ctx, id); err != nil {
					return Page[Approval]{}, err
				}
				again, settled[id] = true, true
			}
		}
	}
	items := make([]Approval, len(rows))
	for i, r := range rows {
		items[i] = approvalOf(r.Approval, r.Overdue, r.SecondsLeft)
	}
	return trimPage(items, q.Limit, func(last Approval) string { return q.nextCursor(workspace, last) }), nil
}

// Approval returns an approval or secret request of a workspace, or APPROVAL_NOT_FOUND.
func (s *Store) Approval(ctx context.Context, workspace, id uuid.UUID) (Approval, error) {
	a, overdue, err := findApproval(ctx, s.q, workspace, id)
	if err != nil || !overdue {
		return a, err
	}
	if err := s.awaitAnswers(ctx, a.SessionID); err != nil {
		return Approval{}, err
	}
	a, _, err = findApproval(ctx, s.q, workspace, id)
	return a, err
}

// awaitAnswers waits for answers that are being committed. A caller that has read a question as
// expired must not see it allowed later.
func (s *Store) awaitAnswers(ctx context.Context, session uuid.UUID) error {
	if err := s.q.ApprovalSettle(ctx, session); err != nil {
		return fmt.Errorf("wait for an answer: %w", err)
	}
	return nil
}

// Approval is Store.Approval inside the change.
func (tx *Tx) Approval(ctx context.Context, id uuid.UUID) (Approval, error) {
	a, _, err := findApproval(ctx, tx.q, tx.row.WorkspaceID, id)
	return a, err
}

// Question returns the data of the input_required event that a turn wrote as seq; nil once
// the session is erased.
func (s *Store) Question(ctx context.Context, turn uuid.UUID, seq int64) (json.RawMessage, error) {
	data, err := s.q.ApprovalAsked(ctx, turn, seq)
	if err != nil {
		return nil, fmt.Errorf("read question: %w", err)
	}
	return data, nil
}

// findApproval reads an approval. overdue reports that it has expired and that its expiry is not
// yet stored.
func findApproval(ctx context.Context, q *db.Queries, workspace, id uuid.UUID) (a Approval, overdue bool, err error) {
	row, err := q.ApprovalGet(ctx, workspace, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, ApprovalNotFound(id)
	}
	if err != nil {
		return a, false, fmt.Errorf("read approval: %w", err)
	}
	return approvalOf(row.Approval, row.Overdue, row.SecondsLeft), row.Overdue, nil
}

func approvalOf(r db.Approval, overdue bool, left float64) Approval {
	a := Approval{
		ApprovalID: r.ID, Kind: event.Input(r.Kind), Status: r.Status, SessionID: r.SessionID, TurnID: r.TurnID, Request: r.Request,
		CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), Reason: r.Reason, Pattern: r.Pattern,
	}
	switch {
	case overdue:
		a.Status, a.DecidedAt = string(event.Expired), &a.ExpiresAt
	case r.DecidedAt != nil:
		a.DecidedAt = new(r.DecidedAt.UTC())
	default:
		a.SecondsLeft = int(math.Ceil(left))
	}
	if r.DecidedBy != nil {
		a.DecidedBy = &Decider{KeyID: *r.DecidedBy}
		if r.Actor != nil {
			a.DecidedBy.Actor = *r.Actor
		}
	}
	return a
}

// ApprovalNotFound returns the error for an approval that the workspace does not have.
func ApprovalNotFound(id uuid.UUID) *fault.Error {
	return fault.New(fault.ApprovalNotFound, "No approval %s in this workspace.", id)
}
