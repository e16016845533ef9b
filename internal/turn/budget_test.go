package turn_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// sixty is the use of a reply: 60 tokens, 0.0001 US dollars of gpt-5-mini.
var sixty = &model.Usage{InputTokens: 20, OutputTokens: 40}

// setBudget stores a budget and reads the workspace as a request knows it then.
func (w *world) setBudget(t testing.TB, b budget.Budget) {
	t.Helper()
	if err := budget.New(w.pool).Set(t.Context(), w.workspace.ID, b); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New(w.pool).Find(t.Context(), w.workspace.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	if w.workspace = ws; !ws.Budgeted {
		t.Fatal("the workspace does not know its budget")
	}
}

// refusedBy returns the budget that rejects a message, "" if it is accepted. It waits for the
// answer.
func refusedBy(t testing.TB, r *replica, req turn.Request) string {
	t.Helper()
	st, err := r.turns.Start(t.Context(), req)
	if err == nil {
		if evs := read(t, r, st); failure(evs) != "" {
			t.Errorf("the turn of an accepted message: %s", kinds(evs))
		}
		return ""
	}
	f := fault.From(err)
	if f == nil || f.Code != fault.BudgetExceeded || f.Detail.RetryAfter <= 0 || f.Detail.RetryAfter > 24*time.Hour {
		t.Fatalf("refused by %v", err)
	}
	return f.Detail.Budget
}

// TestBudgetsRejectMessages uses up the budget of each kind of subject. Other subjects and other
// workspaces are not affected, and the next day begins with nothing used.
func TestBudgetsRejectMessages(t *testing.T) {
	t.Parallel()
	most := new(int64(100)) // two replies
	for _, b := range []budget.Budget{
		{Kind: budget.Workspace, MaxTokens: most},
		{Kind: budget.Workspace, MaxCostUSD: new(0.00015)},
		{Kind: budget.Key, Subject: "k1", MaxTokens: most},
		{Kind: budget.Key, MaxTokens: most},
		{Kind: budget.User, Subject: "anna", MaxTokens: most},
		{Kind: budget.User, MaxTokens: most},
	} {
		t.Run(fmt.Sprintf("%s %q", b.Kind, b.Subject), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
				return modeltest.Reply{Text: []string{"yes"}, Usage: sixty}
			}})
			r := w.replica(t, nil)
			message := turn.Request{Workspace: w.workspace, Command: "go", Key: "k1", Labels: session.Labels{User: "anna"}}
			if by := refusedBy(t, r, message); by != "" { // counted when the budget is set
				t.Fatalf("without a budget: %s", by)
			}
			w.setBudget(t, b)
			message.Workspace = w.workspace
			for i, want := range []string{"", string(b.Kind)} {
				if by := refusedBy(t, r, message); by != want {
					t.Errorf("message %d: refused by %q", i+2, by)
				}
			}
			other := message
			other.Key, other.Labels.User = "k2", "bert"
			if by := refusedBy(t, r, other); (by != "") != (b.Kind == budget.Workspace) {
				t.Errorf("another key and user: refused by %q", by)
			}
			elsewhere, err := workspace.New(w.pool).Create(t.Context(), "elsewhere", "", "")
			if err != nil {
				t.Fatal(err)
			}
			other = message
			other.Workspace = elsewhere
			if by := refusedBy(t, r, other); by != "" {
				t.Errorf("another workspace: refused by %q", by)
			}
			if _, err := w.pool.Exec(t.Context(), `UPDATE budget_use SET day = day - 1`); err != nil {
				t.Fatal(err)
			}
			if by := refusedBy(t, r, message); by != "" {
				t.Errorf("the next day: refused by %q", by)
			}
		})
	}
}

// TestBudgetEndsTurnsBetweenSteps starts eight turns at once just below the budget. Their first
// steps exceed it, once each: no turn makes another step, and the text so far stays.
func TestBudgetEndsTurnsBetweenSteps(t *testing.T) {
	t.Parallel()
	passed := make(chan struct{})
	release := sync.OnceFunc(func() { close(passed) })
	defer release()
	script := &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
		<-passed // no reply counts before every message is checked
		return modeltest.Reply{Text: []string{"One moment."}, Calls: []modeltest.Call{{Tool: "book", Input: `{}`}}, Usage: sixty}
	}}
	w := newWorld(t, script)
	tool := newLedger(t, w, true)
	w.setBudget(t, budget.Budget{Kind: budget.Workspace, MaxTokens: new(int64(59))})
	r := w.replica(t, nil)
	const n = 8
	started := make([]turn.Started, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var err error
			started[i], err = r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "go", Key: "k"})
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		})
	}
	wait.Until(t, "all messages", all.Wait)
	if t.Failed() {
		t.FailNow()
	}
	wait.For(t, "all turns in their first step", func() bool { return len(script.Requests()) == n })
	release()
	for range n {
		wait.Receive(t, "a turn in its tool", tool.entered)
	}
	if by := refusedBy(t, r, turn.Request{Workspace: w.workspace, Command: "go", Key: "k"}); by != "workspace" {
		t.Errorf("one more message: refused by %q", by)
	}
	for range n {
		tool.leave <- struct{}{}
	}
	for i, st := range started {
		if evs := read(t, r, st); failure(evs) != event.BudgetExceeded || text(evs) != "One moment." {
			t.Errorf("turn %d: %s", i, kinds(evs))
		}
	}
	list, err := budget.New(w.pool).List(t.Context(), w.workspace.ID)
	if err != nil || len(list) != 1 || list[0].Used.Tokens != n*60 || len(script.Requests()) != n {
		t.Errorf("%+v after %d replies, %v", list, len(script.Requests()), err)
	}
}

// TestCostBudgetsNeedAPrice rejects messages to a model without a price while a budget is in US
// dollars, and accepts them with a budget in tokens.
func TestCostBudgetsNeedAPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("yes"))
	unpriced := openai.New(openai.Config{Model: "house-blend", APIKey: "sk-test", BaseURL: "http://127.0.0.1:1/v1"})
	r := w.replica(t, func(c *turn.Config) {
		c.Model = func(context.Context, uuid.UUID, string) (model.Model, error) { return unpriced, nil }
		c.DefaultModel = unpriced.Name()
		c.Workers = 0
	})
	w.setBudget(t, budget.Budget{Kind: budget.Key, MaxCostUSD: new(5.0)})
	message := turn.Request{Workspace: w.workspace, Command: "go", Key: "k"}
	if _, err := r.turns.Start(t.Context(), message); fault.From(err) == nil || !strings.Contains(err.Error(), "house-blend") {
		t.Errorf("without a price: %v", err)
	}
	w.setBudget(t, budget.Budget{Kind: budget.Key, MaxTokens: new(int64(5))})
	if _, err := r.turns.Start(t.Context(), message); err != nil {
		t.Errorf("with a budget in tokens: %v", err)
	}
}
