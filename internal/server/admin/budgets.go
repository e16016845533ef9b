package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/budget"
)

// budgetView is a budget with the use of today.
type budgetView struct {
	Kind       budget.Kind `json:"kind"`
	Subject    *string     `json:"subject"` // null: the workspace, each key or each user
	MaxCostUSD *float64    `json:"max_cost_usd"`
	MaxTokens  *int64      `json:"max_tokens"`
	Used       *usedView   `json:"used"` // null: each key or each user has its own
	UpdatedAt  time.Time   `json:"updated_at"`
}

type usedView struct {
	CostUSD float64 `json:"cost_usd"`
	Tokens  int64   `json:"tokens"`
}

func (s *api) budgetViews(ctx context.Context, c *call) ([]budgetView, error) {
	list, err := s.Budgets.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	views := make([]budgetView, len(list))
	for i, b := range list {
		v := budgetView{Kind: b.Kind, MaxCostUSD: b.MaxCostUSD, MaxTokens: b.MaxTokens, UpdatedAt: b.UpdatedAt.UTC()}
		if b.Subject != "" {
			v.Subject = &b.Subject
		}
		if b.Subject != "" || b.Kind == budget.Workspace {
			v.Used = &usedView{b.Used.CostUSD, b.Used.Tokens}
		}
		views[i] = v
	}
	return views, nil
}

func (s *api) listBudgets(ctx context.Context, c *call) (any, error) {
	views, err := s.budgetViews(ctx, c)
	if err != nil {
		return nil, err
	}
	name := func(v budgetView) string { return string(v.Kind) + "/" + subjectOf(v) }
	slices.SortFunc(views, func(a, b budgetView) int {
		if name(a) < name(b) {
			return -1
		}
		return 1
	})
	return paged(c, views, name)
}

func subjectOf(v budgetView) string {
	if v.Subject == nil {
		return ""
	}
	return *v.Subject
}

func (s *api) putBudget(ctx context.Context, c *call) (any, error) {
	b := budget.Budget{Kind: budget.Kind(c.PathValue("kind")), Subject: c.body.String("subject", 256)}
	if !slices.Contains(budget.Kinds, b.Kind) {
		return nil, notFound("kind of budget", string(b.Kind))
	}
	parseNumber(c, "max_cost_usd", &b.MaxCostUSD)
	parseNumber(c, "max_tokens", &b.MaxTokens)
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := s.checkBudgetKey(ctx, c, b); err != nil {
		return nil, err
	}
	if err := s.Budgets.Set(ctx, c.Caller.Workspace.ID, b); err != nil {
		return nil, err
	}
	views, err := s.budgetViews(ctx, c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(views, func(v budgetView) bool { return v.Kind == b.Kind && subjectOf(v) == b.Subject })
	if i < 0 {
		return nil, notFound("budget", c.PathValue("kind"))
	}
	return views[i], nil
}

// checkBudgetKey rejects a key that the workspace does not have. Members spend under their own ids.
func (s *api) checkBudgetKey(ctx context.Context, c *call, b budget.Budget) error {
	if b.Kind != budget.Key || b.Subject == "" || strings.HasPrefix(b.Subject, apikey.MemberPrefix) {
		return nil
	}
	keys, err := s.Keys.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k apikey.Key) bool { return k.ID == b.Subject }) {
		return fault.Invalid(fault.Violation{Param: "/subject", Rule: "unknown",
			Message: fmt.Sprintf("The workspace has no key %.80q. The subject of a budget is the id of a key.", b.Subject)})
	}
	return nil
}

// parseNumber parses a number that may be absent.
func parseNumber[T any](c *call, name string, into **T) {
	if c.body.Has(name) && json.Unmarshal(c.body.Raw(name), into) != nil {
		c.Add(fault.Violation{Param: "/" + name, Rule: "type", Message: name + " is not such a number."})
	}
}

func (s *api) deleteBudget(ctx context.Context, c *call) (any, error) {
	subject := c.query.Text("subject")
	if err := c.Err(); err != nil {
		return nil, err
	}
	kind := c.PathValue("kind")
	found, err := s.Budgets.Delete(ctx, c.Caller.Workspace.ID, budget.Kind(kind), subject)
	if err == nil && !found {
		err = notFound("budget", kind)
	}
	return deleted{kind, true}, err
}
