package budget

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Spender is who spends.
type Spender struct {
	Workspace uuid.UUID
	Key       string // "": an administrator's command
	User      string // "": not known
}

// Today are the budgets of a spender with their use.
type Today struct {
	Model string // of the agent's version that was asked for; "": the service's own
	rows  []db.BudgetsApplyRow
}

// Read reads the budgets of a spender, and the model of a version of an agent, uuid.Nil for the
// default agent's. on may be a transaction; nil is the pool.
func (s *Store) Read(ctx context.Context, on db.DBTX, who Spender, version uuid.UUID) (Today, error) {
	q := s.q
	if on != nil {
		q = db.New(on)
	}
	var of *uuid.UUID
	if version != uuid.Nil {
		of = &version
	}
	rows, err := q.BudgetsApply(ctx, of, who.Workspace, who.Key, who.User)
	if err != nil {
		return Today{}, fmt.Errorf("read budgets: %w", err)
	}
	t := Today{rows: rows}
	if len(rows) > 0 {
		t.Model = rows[0].Model
	}
	return t, nil
}

// names are the subjects in messages.
var names = map[Kind]string{Workspace: "the workspace", Key: "this API key", User: "this user"}

// Check fails with BUDGET_EXCEEDED if a budget is used up, or if it is in US dollars and the price
// of the model is not known.
func (t Today) Check(model string, priced bool) error {
	for _, r := range t.rows {
		name := names[Kind(r.Kind)]
		switch {
		case r.MaxCostUSD != nil && !priced:
			return exceeded(r, "The price of the model %s is not known, so the budget of %s in US dollars cannot be kept. "+
				"An administrator can add the price to the file of PARLEY_PRICES, choose a model with a price, or replace the budget by "+
				"one in tokens.", model, name)
		case r.MaxCostUSD != nil && r.CostUSD >= *r.MaxCostUSD:
			return exceeded(r, "The budget of %s for today is used up: %.4f of %.4f US dollars. The next day begins at 00:00 UTC.", name,
				r.CostUSD, *r.MaxCostUSD)
		case r.MaxTokens != nil && r.Tokens >= *r.MaxTokens:
			return exceeded(r, "The budget of %s for today is used up: %d of %d tokens. The next day begins at 00:00 UTC.", name, r.Tokens,
				*r.MaxTokens)
		}
	}
	return nil
}

func exceeded(r db.BudgetsApplyRow, format string, args ...any) *fault.Error {
	f := fault.New(fault.BudgetExceeded, format, args...)
	f.Detail.Budget, f.Detail.RetryAfter = r.Kind, time.Duration(r.SecondsLeft*float64(time.Second))
	return f
}

// Count adds a reply of a model to the use of today.
func (s *Store) Count(ctx context.Context, who Spender, u Use) error {
	err := s.q.BudgetUseAdd(ctx, db.BudgetUseAddParams{WorkspaceID: who.Workspace, KeyID: who.Key, EndUser: who.User, CostUSD: u.CostUSD,
		Tokens: u.Tokens})
	if err != nil {
		return fmt.Errorf("count the use of budgets: %w", err)
	}
	return nil
}
