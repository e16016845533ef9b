package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/budget"
)

func (c *command) budgetCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "budget",
		Aliases: []string{"budgets"},
		Short:   "manage what a workspace, its keys and its users may spend in a day",
		Example: `  parley budget list
  parley budget update workspace --max-cost-usd 20
  parley budget delete workspace`,
	}, c.budgetList(), c.budgetUpdate(), c.budgetDelete())
}

// budgetShown is a budget in --json.
type budgetShown struct {
	Kind       string   `json:"kind"`
	Subject    *string  `json:"subject"` // null: the workspace, each key or each user
	MaxCostUSD *float64 `json:"max_cost_usd"`
	MaxTokens  *int64   `json:"max_tokens"`
	CostUSD    *float64 `json:"used_cost_usd"` // null: each key or each user has its own
	Tokens     *int64   `json:"used_tokens"`
}

func (c *command) budgetList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list budgets with the use of today",
		Example: `  parley budget list
  parley budget list --workspace sales --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			list, err := a.Budgets(ctx)
			if err != nil {
				return err
			}
			shown := make([]budgetShown, len(list))
			for i, b := range list {
				shown[i] = budgetShown{Kind: b.Kind, Subject: b.Subject, MaxCostUSD: b.MaxCostUSD, MaxTokens: b.MaxTokens}
				if b.Used != nil {
					shown[i].CostUSD, shown[i].Tokens = &b.Used.CostUSD, &b.Used.Tokens
				}
			}
			return c.printList(shown, len(shown), "No budgets. Next: parley budget update workspace --max-cost-usd 20",
				[]string{"KIND", "SUBJECT", "MAX USD", "USED USD", "MAX TOKENS", "USED TOKENS"}, func(i int) []string {
					s := shown[i]
					subject := "each"
					switch {
					case s.Subject != nil:
						subject = *s.Subject
					case s.Kind == string(budget.Workspace):
						subject = a.slug
					}
					return []string{s.Kind, subject, formatUSD(s.MaxCostUSD), formatUSD(s.CostUSD), formatTokens(s.MaxTokens), formatTokens(s.Tokens)}
				})
		}),
	})
}

func formatUSD(n *float64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatFloat(*n, 'f', 4, 64)
}

func formatTokens(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func (c *command) budgetUpdate() *cobra.Command {
	var usd float64
	var tokens int64
	cmd := &cobra.Command{
		Use:     "update KIND [SUBJECT]",
		Aliases: []string{"set"},
		Short:   "set the budget of the workspace, a key or a user",
		Long: `KIND is workspace, key or user. SUBJECT is the id of a key or the name of a user, as messages have
it in user; without SUBJECT the budget is that of each key or each user without one of its own. A
limit that is not given stays as it is; parley budget delete removes both.`,
		Example: `  parley budget update workspace --max-cost-usd 20
  parley budget update key 7F3kQ2xY --max-cost-usd 5 --max-tokens 1000000
  parley budget update user --max-tokens 100000       of each user`,
		Args: atLeastArguments(1, "KIND", "SUBJECT"),
	}
	cmd.RunE = c.administer(func(ctx context.Context, a *administration, args []string) error {
		b := budgetOf(args)
		if cmd.Flags().Changed("max-cost-usd") {
			b.MaxCostUSD = &usd
		}
		if cmd.Flags().Changed("max-tokens") {
			b.MaxTokens = &tokens
		}
		if err := putBudget(ctx, a, &b); err != nil {
			return err
		}
		return c.printDone(object{"kind": b.Kind, "subject": subjectText(b), "max_cost_usd": b.MaxCostUSD, "max_tokens": b.MaxTokens},
			"Set the budget of %s. Next: parley budget list", budgetName(b))
	})
	workspaceFlag(cmd)
	cmd.Flags().Float64Var(&usd, "max-cost-usd", 0, "US dollars in a day of UTC; needs a model with a known price")
	cmd.Flags().Int64Var(&tokens, "max-tokens", 0, "tokens in a day of UTC, input and output")
	return cmd
}

// putBudget stores a budget. A limit that it lacks is that of the present budget.
func putBudget(ctx context.Context, a *administration, b *client.Budget) error {
	put := a.Admin
	if (b.MaxCostUSD == nil) != (b.MaxTokens == nil) {
		w, err := a.Workspace(ctx)
		if err != nil {
			return err
		}
		list, err := a.Budgets(ctx)
		if err != nil {
			return err
		}
		for _, now := range list {
			if now.Kind == b.Kind && subjectText(now) == subjectText(*b) {
				b.MaxCostUSD, b.MaxTokens = cmp.Or(b.MaxCostUSD, now.MaxCostUSD), cmp.Or(b.MaxTokens, now.MaxTokens)
				put = a.Since(w.LogPosition) // another administrator's change is not overwritten
			}
		}
	}
	_, err := put.PutBudget(ctx, *b)
	return err
}

func (c *command) budgetDelete() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "delete KIND [SUBJECT]",
		Short: "delete a budget",
		Example: `  parley budget delete workspace
  parley budget delete key 7F3kQ2xY`,
		Args: atLeastArguments(1, "KIND", "SUBJECT"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			b := budgetOf(args)
			if err := a.DeleteBudget(ctx, b.Kind, subjectText(b)); isNotFound(err) {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "There is no such budget.", Do: "See parley budget list."}
			} else if err != nil {
				return err
			}
			return c.printDone(object{"kind": b.Kind, "subject": subjectText(b)}, "Deleted the budget of %s.", budgetName(b))
		}),
	})
}

func budgetOf(args []string) client.Budget {
	b := client.Budget{Kind: args[0]}
	if len(args) > 1 {
		b.Subject = &args[1]
	}
	return b
}

func subjectText(b client.Budget) string {
	if b.Subject == nil {
		return ""
	}
	return *b.Subject
}

func budgetName(b client.Budget) string {
	switch {
	case b.Kind == string(budget.Workspace):
		return "the workspace"
	case b.Subject == nil:
		return "each " + b.Kind
	}
	return fmt.Sprintf("the %s %s", b.Kind, *b.Subject)
}
