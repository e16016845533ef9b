// Package workspace owns workspaces: one agent each, and the tenant of all other data.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/agent"
)

// Workspace is one agent: its instructions, its model and its limits. A nil limit means the
// service's own.
type Workspace struct {
	ID           uuid.UUID
	Slug         string
	Name         string
	Instructions string
	Model        *string // provider/name
	CreatedAt    time.Time
	UpdatedAt    time.Time

	MaxResponseSeconds int
	MaxTurns           int   // model calls in a turn
	MaxRunning         int   // turns at once
	HistoryTokens      *int  // of earlier turns, for the model; nil: as many as fit its window
	StorageQuota       int64 // bytes; 0: unlimited

	// Limits of each key; 0 is unlimited.
	MessagesPerMinute *int
	CallsPerMinute    *int
	OpenStreams       *int

	Paused Pause

	SeparateApprover bool
	AdminPatterns    bool

	CallerInstructions bool // messages may have instructions of the caller
	CallerParameters   bool // messages may have parameters of the model

	FallbackModels []string // answer in place of an agent's model that fails, in this order

	ReasoningSummaries bool // summaries of the reasoning are requested, stored and sent

	SearchLanguage string // one of SearchLanguages

	Budgeted     bool // it has budgets
	HasProviders bool // it has providers of models of its own
}

func workspaceOf(r db.Workspace) Workspace {
	return Workspace{
		ID: r.ID, Slug: r.Slug, Name: r.Name, Instructions: r.Instructions, Model: r.Model, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		MaxResponseSeconds: int(r.MaxResponseSeconds), MaxTurns: int(r.MaxTurns), MaxRunning: int(r.MaxRunning),
		HistoryTokens: agent.ParseHistory(r.HistoryTokens), StorageQuota: r.StorageQuota,
		MessagesPerMinute: widenInt(r.MessagesPerMinute), CallsPerMinute: widenInt(r.CallsPerMinute), OpenStreams: widenInt(r.OpenStreams),
		Paused:           Pause{At: r.PausedAt, By: r.PausedBy},
		SeparateApprover: r.SeparateApprover, AdminPatterns: r.AdminPatterns, CallerInstructions: r.CallerInstructions,
		CallerParameters: r.CallerParameters,
		FallbackModels:   r.FallbackModels, SearchLanguage: r.SearchLanguage, ReasoningSummaries: r.ReasoningSummaries, Budgeted: r.Budgeted,
		HasProviders: r.HasProviders,
	}
}

func widenInt(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// Store reads and writes workspaces.
type Store struct {
	pool  *pgxpool.Pool
	q     *db.Queries
	known known
}

// New makes a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// Find returns a workspace by its slug or its id, or fails with WORKSPACE_NOT_FOUND.
func (s *Store) Find(ctx context.Context, ref string) (Workspace, error) {
	var row db.Workspace
	var err error
	if id, parseErr := uuid.Parse(ref); parseErr == nil && len(ref) == 36 {
		row, err = s.q.WorkspaceByID(ctx, id)
	} else if isSlug(ref) {
		row, err = s.q.WorkspaceBySlug(ctx, ref)
	} else {
		err = pgx.ErrNoRows
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return Workspace{}, fault.New(fault.WorkspaceNotFound, "Workspace %.80q does not exist. `parley workspace list` shows the names.", ref)
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("find workspace: %w", err)
	}
	w := workspaceOf(row)
	if !replan.IsRehearsal(ctx) {
		s.known.keepRow(w)
	}
	return w, nil
}

// Create creates a workspace with the default limits, as Add does.
func (s *Store) Create(ctx context.Context, ref, name, instructions string) (Workspace, error) {
	c := Change{Instructions: &instructions}
	if name != "" {
		c.Name = &name
	}
	return s.Add(ctx, ref, c)
}

// Add creates a workspace. Fields that c leaves nil have their defaults; the default name is the
// slug. A slug in use is an INVALID_REQUEST.
func (s *Store) Add(ctx context.Context, ref string, c Change) (Workspace, error) {
	vs := c.Violations()
	if !isSlug(ref) {
		vs = append([]fault.Violation{{Param: "/slug", Rule: "format",
			Message: "A workspace's name is 1 to 63 characters of a-z, 0-9 and -, and begins with a letter or a digit."}}, vs...)
	}
	if len(vs) > 0 {
		return Workspace{}, fault.Invalid(vs...)
	}
	var row db.Workspace
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		q := s.q.WithTx(tx)
		set := c.updateParams(uuid.Must(uuid.NewV7()))
		row, err = q.WorkspaceInsert(ctx, db.WorkspaceInsertParams{ID: set.ID, Slug: ref, Name: ref, Instructions: set.Instructions,
			Model:              set.Model,
			MaxResponseSeconds: set.MaxResponseSeconds, MaxTurns: set.MaxTurns, HistoryTokens: set.HistoryTokens})
		if err == nil {
			row, err = q.WorkspaceUpdate(ctx, set)
		}
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Workspace{}, fault.Invalid(fault.Violation{Param: "/slug", Rule: "unique",
			Message: fmt.Sprintf("There is a workspace %q already.", ref)})
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("create workspace: %w", err)
	}
	return workspaceOf(row), nil
}

// Update changes a workspace. The change applies to turns that are accepted from now on.
func (s *Store) Update(ctx context.Context, id uuid.UUID, c Change) (Workspace, error) {
	if vs := c.Violations(); len(vs) > 0 {
		return Workspace{}, fault.Invalid(vs...)
	}
	row, err := s.q.WorkspaceUpdate(ctx, c.updateParams(id))
	if errors.Is(err, pgx.ErrNoRows) && c.Seen != nil {
		if _, err := s.Find(ctx, id.String()); err != nil {
			return Workspace{}, err
		}
		return Workspace{}, fault.New(fault.PreconditionFailed,
			"The workspace has changed since you read it. Read it again, and repeat your change.")
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return Workspace{}, fault.New(fault.WorkspaceNotFound, "Workspace %s does not exist. `parley workspace list` shows those that exist.", id)
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("update workspace: %w", err)
	}
	w := workspaceOf(row)
	if !replan.IsRehearsal(ctx) {
		s.known.keepRow(w)
	}
	return w, nil
}

// Delete removes a workspace with every row that belongs to it. Its sessions and files are removed
// first, by their owners: see app.Stores.DeleteWorkspace.
func (s *Store) Delete(ctx context.Context, id uuid.UUID) error {
	if _, err := s.q.WorkspaceDelete(ctx, id); err != nil {
		return fmt.Errorf("delete workspace: %w", err)
	}
	return nil
}

// List returns every workspace, by slug.
func (s *Store) List(ctx context.Context) ([]Workspace, error) {
	rows, err := s.q.WorkspacesList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	list := make([]Workspace, len(rows))
	for i, r := range rows {
		list[i] = workspaceOf(r)
	}
	return list, nil
}

func isSlug(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
