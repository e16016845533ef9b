package budget

import (
	"slices"

	"github.com/parley-server/parley/internal/fault"
)

// The largest budgets.
const (
	mostUSD    = 1e9
	mostTokens = 1e15
	maxSubject = 256 // characters of a user's name
)

// violations lists what is wrong with a budget.
func (b Budget) violations() (vs []fault.Violation) {
	add := func(param, rule, message string) {
		vs = append(vs, fault.Violation{Param: param, Rule: rule, Message: message})
	}
	if !slices.Contains(Kinds, b.Kind) {
		add("/kind", "enum", "A budget is of a workspace, a key or a user.")
	}
	if b.Kind == Workspace && b.Subject != "" {
		add("/subject", "unknown", "The budget of a workspace has no subject.")
	}
	if len([]rune(b.Subject)) > maxSubject {
		add("/subject", "max_length", "The subject has more than 256 characters.")
	}
	if b.MaxCostUSD == nil && b.MaxTokens == nil {
		add("/max_cost_usd", "required", "A budget needs max_cost_usd, max_tokens or both.")
	}
	if b.MaxCostUSD != nil && !(*b.MaxCostUSD >= 0 && *b.MaxCostUSD <= mostUSD) {
		add("/max_cost_usd", "range", "max_cost_usd is a number from 0 to 1000000000.")
	}
	if b.MaxTokens != nil && (*b.MaxTokens < 0 || *b.MaxTokens > mostTokens) {
		add("/max_tokens", "range", "max_tokens is a whole number from 0 to 1000000000000000.")
	}
	return vs
}
