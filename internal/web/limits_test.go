package web

import (
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestLimitsAreChanged reads limits with their use and changes them, and creates, changes and deletes
// budgets. A change that another administrator has overtaken is rejected, and an editor has no form.
func TestLimitsAreChanged(t *testing.T) {
	t.Parallel()
	w := serveWorld(t, apitest.New(t, apitest.Options{Limits: ratelimit.Limits{Messages: 1, Calls: 1000, Streams: 1000}}))
	if _, err := w.Wiki.Put(t.Context(), w.Workspace.ID, "wiki/onboarding.md", "# Onboarding\n"); err != nil {
		t.Fatal(err)
	}
	budgets := budget.New(w.Pool)
	if err := budgets.Set(t.Context(), w.Workspace.ID, budget.Budget{Kind: budget.Workspace, MaxTokens: new(int64(1000))}); err != nil {
		t.Fatal(err)
	}
	w.say(t, "@say Hello", `"user":"<img src=x onerror=hacked=1>"`)
	p := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	address := w.URL + "/w/demo/limits"
	p.Go(address)
	p.See("tr", "1 of 100,000")             // documents
	p.See("tr", "key TestLimitsAreChanged") // the messages of its minute
	p.See("tr", "of 1,000")                 // the budget

	p.Fill("#f-storage_quota", "many")
	p.Press("button", "Save limits")
	p.See(".err", "not a size")
	p.Fill("#f-storage_quota", "1.5 GiB")
	p.Fill("#f-max_running", "0")
	p.Press("button", "Save limits")
	p.See(".err", "max_running is 1 to 10000")
	p.Fill("#f-max_running", "7")
	p.Fill("#f-messages_per_minute", "30")
	p.Press("button", "Save limits")
	p.See(".note", "Limits saved")
	p.See("tr", "0 of 7")
	ws, err := w.Workspaces.Find(t.Context(), "demo")
	if err != nil || ws.MaxRunning != 7 || ws.StorageQuota != 3<<29 || ws.MessagesPerMinute == nil || *ws.MessagesPerMinute != 30 ||
		ws.CallsPerMinute != nil {
		t.Errorf("the workspace is %+v, %v", ws, err)
	}
	if _, err := w.Workspaces.Update(t.Context(), ws.ID, workspace.Change{MaxRunning: new(9)}); err != nil {
		t.Fatal(err)
	}
	p.Fill("#f-max_running", "8")
	p.Press("button", "Save limits")
	p.See(".note.bad", "changed")
	if ws, err = w.Workspaces.Find(t.Context(), "demo"); err != nil || ws.MaxRunning != 9 {
		t.Errorf("the workspace has %d turns at once, %v", ws.MaxRunning, err)
	}

	p.Go(address)
	choose(t, p, "#f-of", "One user, named below")
	p.Fill("#f-user", "<img src=x onerror=hacked=1>")
	p.Press("button", "Save budget")
	p.See(".note.bad, .err", "max_cost_usd")
	p.Fill("#f-max_cost_usd", "0.5")
	p.Press("button", "Save budget")
	p.See("td", "<img src=x")
	choose(t, p, "#f-of", "Each key and member")
	p.Fill("#f-max_tokens", "5000")
	p.Press("button", "Save budget")
	p.See("td", "5,000 each")
	unhurt(t, p)
	p.Review("limits")
	p.Press("[aria-label^='Change the budget of Workspace']", "Change")
	if err := budgets.Set(t.Context(), ws.ID, budget.Budget{Kind: budget.Workspace, MaxTokens: new(int64(2000))}); err != nil {
		t.Fatal(err)
	}
	p.Fill("#f-max_tokens", "3000")
	p.Press("button", "Save budget")
	p.See(".note.bad", "changed this budget")
	p.Go(address + "?budget=workspace:")
	p.Fill("#f-max_tokens", "3000")
	p.Press("button", "Save budget")
	p.See("td", "of 3,000")
	p.Press("[aria-label^='Delete the budget of User']", "Delete")
	p.Shot("limits-delete")
	p.Press("button.fill", "Delete budget")
	p.See(".note", "Budget deleted")
	list, err := budgets.List(t.Context(), ws.ID)
	if err != nil || len(list) != 2 || list[0].MaxTokens == nil || *list[0].MaxTokens != 3000 || list[0].Used.Tokens == 0 {
		t.Errorf("the budgets are %+v, %v", list, err)
	}
	if err := budgets.Set(t.Context(), ws.ID, budget.Budget{Kind: budget.Workspace, MaxTokens: new(int64(1)),
		Seen: new(time.Time)}); err == nil {
		t.Error("a new budget replaced the one that exists")
	}

	editor := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Holm"}, apikey.Editor)
	editor.Go(address)
	editor.See("h2", "Budgets of a day")
	if n := len(editor.MustElements("main form, main .danger")); n != 0 {
		t.Errorf("an editor has %d forms", n)
	}
}
