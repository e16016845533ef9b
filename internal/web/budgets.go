package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/text"
)

// budgetRow is a budget with the use of today.
type budgetRow struct {
	budget.Budget
	Name string // of a key or a user; "" of a common budget
}

// budgetsView are the budgets of a workspace and their form.
type budgetsView struct {
	Budgets  []budgetRow
	Subjects []option // of a new budget
	Budget   *form
	Edit     *budgetRow // the budget that the form changes; nil: a new one
	Delete   *budgetRow // asks before it is deleted
}

// Of is the address of a budget in a query.
func (b budgetRow) Of() string { return string(b.Kind) + ":" + b.Subject }

// Title is what the budget limits.
func (b budgetRow) Title() string {
	return map[budget.Kind]string{budget.Workspace: "Workspace", budget.Key: "Key", budget.User: "User"}[b.Kind]
}

// Each reports whether each key or each user has the budget for itself.
func (b budgetRow) Each() bool { return b.Kind != budget.Workspace && b.Subject == "" }

// Tokens is the limit of tokens.
func (b budgetRow) Tokens() int64 { return *b.MaxTokens }

// CostShare is the percentage of the cost that is spent.
func (b budgetRow) CostShare() int { return share(b.Used.CostUSD, *b.MaxCostUSD) }

// TokenShare is the percentage of the tokens that are used.
func (b budgetRow) TokenShare() int { return share(float64(b.Used.Tokens), float64(*b.MaxTokens)) }

func share(used, most float64) int {
	if used >= most {
		return 100
	}
	return int(100 * used / most)
}

// readBudgets reads the budgets, and the one that the address asks to change or to delete.
func (a *App) readBudgets(p *page, view *budgetsView) error {
	list, err := a.Budgets.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	names, q := newAsker(p), p.URL.Query()
	for _, b := range list {
		row := budgetRow{Budget: b, Name: text.Mask(b.Subject)}
		if b.Kind == budget.Key && b.Subject != "" {
			if row.Name, err = names.name(p.Context(), b.Subject); err != nil {
				return err
			}
			row.Name = strings.TrimPrefix(row.Name, "key ")
		}
		view.Budgets = append(view.Budgets, row)
		if p.Can("admin") && row.Of() == q.Get("budget") {
			view.Edit = &row
		}
		if p.Can("admin") && row.Of() == q.Get("delete") {
			view.Delete = &row
		}
	}
	if view.Budget == nil {
		view.Budget = emptyForm("of", "workspace:")
		if b := view.Edit; b != nil {
			view.Budget = budgetForm(b.Budget)
		}
	}
	return a.readSubjects(p, view)
}

func budgetForm(b budget.Budget) *form {
	f := emptyForm("seen", strconv.FormatInt(b.UpdatedAt.UnixMicro(), 10))
	if b.MaxCostUSD != nil {
		f.Values.Set("max_cost_usd", strconv.FormatFloat(*b.MaxCostUSD, 'f', -1, 64))
	}
	if b.MaxTokens != nil {
		f.Values.Set("max_tokens", strconv.FormatInt(*b.MaxTokens, 10))
	}
	return f
}

// readSubjects lists what a new budget may limit.
func (a *App) readSubjects(p *page, view *budgetsView) error {
	keys, err := a.srv.Keys.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	view.Subjects = []option{{"workspace:", "The workspace"}, {"key:", "Each key and member"}, {"user:", "Each user"},
		{"user:*", "One user, named below"}}
	for _, k := range keys {
		if k.RevokedAt == nil {
			view.Subjects = append(view.Subjects, option{"key:" + k.ID, "Key " + text.Mask(k.Name)})
		}
	}
	return nil
}

// saveBudget creates or replaces a budget.
func (a *App) saveBudget(w http.ResponseWriter, p *page, f *form) error {
	b, err := parseBudget(f)
	if err != nil {
		return err
	}
	if !f.Failed() {
		err = a.Budgets.Set(p.Context(), p.Workspace.ID, b)
		if problem := fault.From(err); problem != nil && problem.Code == fault.PreconditionFailed && b.Seen.IsZero() {
			f.fail("of", "There is such a budget already. Change it in the list above.")
		} else if err != nil {
			if err := f.take(err, "max_cost_usd", "max_tokens"); err != nil {
				return err
			}
		}
	}
	if f.Failed() {
		return a.showLimits(w, p, http.StatusUnprocessableEntity, limitsView{budgetsView: budgetsView{Budget: f}})
	}
	p.flash(w, "Budget saved. It applies within a second.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/limits")
}

// parseBudget returns the budget of a form, whose fields it checks.
func parseBudget(f *form) (b budget.Budget, err error) {
	kind, subject, ok := strings.Cut(f.Value("of"), ":")
	if b.Kind = budget.Kind(kind); !ok || !slices.Contains(budget.Kinds, b.Kind) {
		return b, unknownForm()
	}
	b.Seen = new(time.Time)
	if seen := f.Value("seen"); seen != "" {
		at, err := strconv.ParseInt(seen, 10, 64)
		if err != nil {
			return b, unknownForm()
		}
		*b.Seen = time.UnixMicro(at)
	} else if f.Value("of") == "user:*" {
		if subject = strings.TrimSpace(f.Value("user")); subject == "" {
			f.fail("user", "Write the name of the user, as your application sends it.")
		}
	}
	b.Subject = subject
	if s := strings.TrimSpace(f.Value("max_cost_usd")); s != "" {
		usd, err := strconv.ParseFloat(s, 64)
		if err != nil {
			f.fail("max_cost_usd", "This is not an amount.")
		}
		b.MaxCostUSD = &usd
	}
	if s := strings.TrimSpace(f.Value("max_tokens")); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			f.fail("max_tokens", "This is not a number.")
		}
		b.MaxTokens = &n
	}
	return b, nil
}

// deleteBudget removes a budget.
func (a *App) deleteBudget(w http.ResponseWriter, p *page, f *form) error {
	kind, subject, _ := strings.Cut(f.Value("of"), ":")
	found, err := a.Budgets.Delete(p.Context(), p.Workspace.ID, budget.Kind(kind), subject)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.RouteNotFound, "This budget does not exist, or is deleted already.")
	}
	p.flash(w, "Budget deleted.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/limits")
}
