package permission

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/replan"
)

// MaxEntries is the maximum number of active patterns of a workspace. Concurrent additions may
// exceed it by their number.
const MaxEntries = 500

// Rule is a pattern to be added to a workspace's allow-list, and its origin.
type Rule struct {
	Workspace uuid.UUID
	Approval  uuid.UUID // zero: none, an administrator adds it
	Key       string    // id of the key or member that adds it, or "cli:anna"
	Pattern   string
}

// Entry is a pattern on a workspace's allow-list, active or revoked.
type Entry struct {
	ID         uuid.UUID
	Tool       string
	Pattern    string
	AddedBy    string     // id of a key or member, or "cli:anna"; "cli" in records of earlier releases
	ApprovalID *uuid.UUID // the approval that added it
	Hits       int64      // calls that it allowed
	LastHitAt  *time.Time
	CreatedAt  time.Time
	RevokedAt  *time.Time
}

// Add adds a pattern to the allow-list, in the transaction of the decision that grants it. An
// existing pattern stays unchanged.
func (s *Store) Add(ctx context.Context, tx pgx.Tx, r Rule) error {
	p, err := Parse(r.Pattern)
	if err != nil {
		return err
	}
	q := s.q.WithTx(tx)
	n, err := q.AllowlistCount(ctx, r.Workspace)
	if err != nil {
		return fmt.Errorf("count the allow-list: %w", err)
	}
	if n >= MaxEntries {
		v := newViolation("max_items", fmt.Sprintf("The allow-list has its %d patterns. An administrator can revoke some.", MaxEntries))
		v.Expected = MaxEntries
		return invalidPattern(v)
	}
	row := db.AllowlistInsertParams{ID: uuid.Must(uuid.NewV7()), WorkspaceID: r.Workspace, Tool: p.Tool(), Pattern: p.String(), AddedBy: r.Key}
	if r.Approval != uuid.Nil {
		row.ApprovalID = &r.Approval
	}
	if _, err := q.AllowlistInsert(ctx, row); err != nil {
		return fmt.Errorf("add to the allow-list: %w", err)
	}
	return nil
}

// AddRule is Add for an administrator, in a transaction of its own. It returns the pattern as it is
// stored.
func (s *Store) AddRule(ctx context.Context, r Rule) (string, error) {
	p, err := Parse(r.Pattern)
	if err != nil {
		return "", err
	}
	return p.String(), replan.InTx(ctx, s.pool, func(tx pgx.Tx) error { return s.Add(ctx, tx, r) })
}

// List returns a workspace's allow-list, oldest first, including revoked entries.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Entry, error) {
	rows, err := s.q.AllowlistList(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list the allow-list: %w", err)
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		entries[i] = Entry{
			ID: r.ID, Tool: r.Tool, Pattern: r.Pattern, AddedBy: r.AddedBy, ApprovalID: r.ApprovalID,
			Hits: r.Hits, LastHitAt: r.LastHitAt, CreatedAt: r.CreatedAt, RevokedAt: r.RevokedAt,
		}
	}
	return entries, nil
}

// Revoke revokes a pattern of the allow-list: from the next step of any turn on, it allows nothing.
// ok is false if the workspace does not have the pattern, or it is revoked.
func (s *Store) Revoke(ctx context.Context, workspace, id uuid.UUID) (ok bool, err error) {
	n, err := s.q.AllowlistRevoke(ctx, workspace, id)
	if err != nil {
		return false, fmt.Errorf("revoke from the allow-list: %w", err)
	}
	return n > 0, nil
}
