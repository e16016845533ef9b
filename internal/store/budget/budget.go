// Package budget owns the budgets of workspaces: what a workspace, each of its keys and each of its
// end users may spend in a day of UTC, on PostgreSQL's clock.
//
// It promises: a reply of a model is counted once, before it is stored; counting takes no lock that
// all turns of a workspace share. A message is checked when it starts a turn, and a turn before
// each of its steps, so a budget is exceeded by at most one step of each turn that runs.
package budget

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Kind is what a budget limits.
type Kind string

const (
	Workspace Kind = "workspace"
	Key       Kind = "key"
	User      Kind = "user"
)

// Kinds lists every kind, the widest first.
var Kinds = []Kind{Workspace, Key, User}

// Budget limits one subject, or each subject of a kind that has no budget of its own.
type Budget struct {
	Kind       Kind
	Subject    string   // id of a key or name of a user; "": the workspace, each key or each user
	MaxCostUSD *float64 // in a day; nil: no limit
	MaxTokens  *int64   // input and output of models, in a day; nil: no limit
	UpdatedAt  time.Time
	Used       Use // today; of each key or each user: zero

	// Seen is the UpdatedAt of the budget that Set replaces, the zero time if there was none. If
	// the budget has changed since, Set fails with PRECONDITION_FAILED. Nil: it may have.
	Seen *time.Time
}

// Use is what a subject has spent on a day.
type Use struct {
	CostUSD float64
	Tokens  int64
}

// Store reads and writes budgets.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// Set creates or replaces a budget. It applies to messages within a second. The first budget of a
// workspace applies to running turns from their next attempt on, every other one from their next
// step on.
func (s *Store) Set(ctx context.Context, workspace uuid.UUID, b Budget) error {
	if vs := b.violations(); len(vs) > 0 {
		return fault.Invalid(vs...)
	}
	n, err := s.q.BudgetSet(ctx, db.BudgetSetParams{WorkspaceID: workspace, Kind: string(b.Kind), Subject: b.Subject,
		MaxCostUSD: b.MaxCostUSD, MaxTokens: b.MaxTokens, Seen: b.Seen})
	if err != nil {
		return fmt.Errorf("store budget: %w", err)
	}
	if n == 0 {
		return fault.New(fault.PreconditionFailed,
			"Another administrator has changed this budget since you read it. Read it again and repeat your change.")
	}
	return nil
}

// Delete removes a budget; found is false if there is none.
func (s *Store) Delete(ctx context.Context, workspace uuid.UUID, kind Kind, subject string) (found bool, err error) {
	n, err := s.q.BudgetDelete(ctx, workspace, string(kind), subject)
	if err != nil {
		return false, fmt.Errorf("delete budget: %w", err)
	}
	return n > 0, nil
}

// List returns the budgets of a workspace with the use of today.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Budget, error) {
	rows, err := s.q.BudgetsList(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	list := make([]Budget, len(rows))
	for i, r := range rows {
		list[i] = Budget{Kind: Kind(r.Kind), Subject: r.Subject, MaxCostUSD: r.MaxCostUSD, MaxTokens: r.MaxTokens, UpdatedAt: r.UpdatedAt,
			Used: Use{r.CostUSD, r.Tokens}}
	}
	return list, nil
}

// Purge removes the counts of days before yesterday.
func (s *Store) Purge(ctx context.Context) error {
	if err := s.q.BudgetUsePurge(ctx); err != nil {
		return fmt.Errorf("remove old use of budgets: %w", err)
	}
	return nil
}
