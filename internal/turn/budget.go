package turn

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/budget"
)

// checkBudgets rejects a message whose workspace, key or user has spent its budget of the day, and
// one whose limit in US dollars cannot be kept. It takes no lock: messages at the same time may all
// pass, and each turn is checked again before each of its steps.
func (s *Service) checkBudgets(ctx context.Context, tx *session.Tx, req Request, n session.NewTurn) error {
	if err := s.checkPrice(ctx, tx, req, n); err != nil || !req.Workspace.Budgeted {
		return err
	}
	who := budget.Spender{Workspace: req.Workspace.ID, Key: req.Key, User: tx.UserOf(n)}
	today, err := s.budgets.Read(ctx, tx.Tx, who, n.AgentVersion)
	if err != nil {
		return err
	}
	return s.checkToday(today, cmp.Or(today.Model, s.cfg.DefaultModel))
}

// checkPrice rejects a message with a limit in US dollars for a model without a known price.
func (s *Service) checkPrice(ctx context.Context, tx *session.Tx, req Request, n session.NewTurn) error {
	if n.MaxCostUSD == nil {
		return nil
	}
	name, err := s.agents.ModelOf(ctx, tx.Tx, req.Workspace.ID, n.AgentVersion)
	if err != nil {
		return err
	}
	name = cmp.Or(name, s.cfg.DefaultModel)
	if _, known := s.cfg.Catalog.Price(name); known {
		return nil
	}
	return fault.Invalid(fault.Violation{Param: "/limits/max_cost_usd", Rule: "unknown", Message: agent.UnknownPrice(name, "the message")})
}

func (s *Service) checkToday(today budget.Today, name string) error {
	_, priced := s.cfg.Catalog.Price(name)
	return today.Check(name, priced)
}

// spenderOf returns who spends what a turn costs.
func spenderOf(t session.Turn) budget.Spender {
	who := budget.Spender{Workspace: t.WorkspaceID}
	if t.KeyID != nil {
		who.Key = *t.KeyID
	}
	if t.EndUser != nil {
		who.User = *t.EndUser
	}
	return who
}

// affordOf checks the budgets of a turn between its steps, for the model of the next step; nil if its
// workspace does not have any.
func (s *Service) affordOf(claimed session.Claimed) func(context.Context, string) error {
	if !claimed.Budgeted {
		return nil
	}
	who := spenderOf(claimed.Turn)
	return func(ctx context.Context, name string) error {
		today, err := s.budgets.Read(ctx, nil, who, uuid.Nil)
		if err != nil {
			return err
		}
		if f := fault.From(s.checkToday(today, name)); f != nil {
			return &agent.Failure{Code: event.BudgetExceeded, Message: f.Message}
		}
		return nil
	}
}

// countReply counts a reply before it is stored: a reply that is lost has its price too.
func (s *Service) countReply(ctx context.Context, claimed session.Claimed, u event.Usage) error {
	if !claimed.Budgeted {
		return nil
	}
	use := budget.Use{Tokens: u.InputTokens + u.OutputTokens}
	if u.CostUSD != nil {
		use.CostUSD = *u.CostUSD
	}
	return s.budgets.Count(ctx, spenderOf(claimed.Turn), use)
}
