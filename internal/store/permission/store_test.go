package permission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// tenant is a workspace with its permissions.
type tenant struct {
	*permission.Store
	pool *pgxpool.Pool
	id   uuid.UUID
}

func open(t *testing.T) tenant {
	t.Helper()
	pool := dbtest.New(t)
	return tenant{Store: permission.New(pool), pool: pool, id: create(t, pool, "acme")}
}

func create(t *testing.T, pool *pgxpool.Pool, slug string) uuid.UUID {
	t.Helper()
	w, err := workspace.New(pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

func (w tenant) add(ctx context.Context, r permission.Rule) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.Add(ctx, tx, r) })
}

func (w tenant) judge(t *testing.T, tool string, input json.RawMessage) permission.Verdict {
	t.Helper()
	rules, err := w.Rules(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	v := rules.Judge(tool, input, nil).Verdict
	return v
}

func (w tenant) list(t *testing.T) []permission.Entry {
	t.Helper()
	entries, err := w.List(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestDenialsComeFirstThenTheAllowListThenTheRule(t *testing.T) {
	t.Parallel()
	w := open(t)
	if err := w.add(t.Context(), permission.Rule{Workspace: w.id, Pattern: "bash(git diff *)"}); err != nil {
		t.Fatal(err)
	}
	covered, other := bash("git diff HEAD"), bash("rm -rf /")
	expect := func(when string, wantCovered, wantOther permission.Verdict) {
		t.Helper()
		if a, b := w.judge(t, "bash", covered), w.judge(t, "bash", other); a != wantCovered || b != wantOther {
			t.Errorf("%s: covered %s, other %s", when, a, b)
		}
	}
	expect("by default", permission.Allow, permission.Ask)
	for _, c := range []struct {
		rule                permission.Verdict
		wantCovered, others permission.Verdict
	}{
		{permission.Deny, permission.Deny, permission.Deny},
		{permission.Ask, permission.Allow, permission.Ask},
		{permission.Allow, permission.Allow, permission.Allow},
	} {
		if err := w.Set(t.Context(), w.id, "bash", c.rule); err != nil {
			t.Fatal(err)
		}
		expect(c.rule.String(), c.wantCovered, c.others)
	}
	if err := w.Reset(t.Context(), w.id, "bash"); err != nil {
		t.Fatal(err)
	}
	expect("after the reset", permission.Allow, permission.Ask)

	// A rule applies only to its tool and its workspace.
	if err := w.Set(t.Context(), w.id, "wiki_write", permission.Ask); err != nil {
		t.Fatal(err)
	}
	rules, err := w.Rules(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	if v := rules.Judge("wiki_write", page("x"), writer).Verdict; v != permission.Ask {
		t.Errorf("the workspace's rule is ask, and its caller with wiki:write gets %s", v)
	}
	elsewhere := tenant{Store: w.Store, pool: w.pool, id: create(t, w.pool, "other")}
	if v := elsewhere.judge(t, "bash", covered); v != permission.Ask {
		t.Errorf("another workspace's pattern applies: %s", v)
	}
}

func TestSettingsListEveryTool(t *testing.T) {
	t.Parallel()
	w := open(t)
	if err := w.Set(t.Context(), w.id, "write", permission.Deny); err != nil {
		t.Fatal(err)
	}
	settings, err := w.Settings(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range settings {
		all = append(all, s.Tool)
		if set := s.Rule != nil; set != (s.Tool == "write") || set && (*s.Rule != permission.Deny || s.Since == nil) || s.Default == "" {
			t.Errorf("%+v", s)
		}
	}
	if got := strings.Join(all, " "); got != "attach_file bash grep http_request read request_secret search wiki_read wiki_write write" {
		t.Errorf("tools: %s", got)
	}
	for tool, want := range map[string]string{"bahs": "Did you mean bash?", "": "Unknown tool", "request_secret": "always asks"} {
		for _, err := range []error{w.Set(t.Context(), w.id, tool, permission.Allow), w.Reset(t.Context(), w.id, tool)} {
			if f := fault.From(err); f == nil || f.Code != fault.InvalidRequestBody || !strings.Contains(f.Message, want) {
				t.Errorf("rule of %q: %v", tool, err)
			}
		}
	}
}

func TestEntriesSayWhereTheyComeFrom(t *testing.T) {
	t.Parallel()
	w := open(t)
	approval := uuid.New()
	for _, r := range []permission.Rule{
		{Workspace: w.id, Approval: approval, Key: "7F3kQ2zB", Pattern: " bash(git diff:*) "},
		{Workspace: w.id, Pattern: "bash(git diff *)"}, // the same pattern: the first origin stays
		{Workspace: w.id, Key: "cli:anna", Pattern: "write(reports/**)"},
	} {
		if err := w.add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	entries := w.list(t)
	if len(entries) != 2 {
		t.Fatalf("%+v", entries)
	}
	first, second := entries[0], entries[1]
	if first.Pattern != "bash(git diff *)" || first.Tool != "bash" || first.AddedBy != "7F3kQ2zB" || first.ApprovalID == nil ||
		*first.ApprovalID != approval {
		t.Errorf("%+v", first)
	}
	if second.Pattern != "write(reports/**)" || second.AddedBy != "cli:anna" || second.ApprovalID != nil || second.LastHitAt != nil ||
		second.Hits != 0 {
		t.Errorf("%+v", second)
	}

	if w.judge(t, "bash", bash("git diff")) != permission.Allow {
		t.Fatal("the pattern does not apply")
	}
	for i, want := range []bool{true, false} {
		if ok, err := w.Revoke(t.Context(), w.id, first.ID); err != nil || ok != want {
			t.Errorf("revoke %d: %t, %v", i, ok, err)
		}
	}
	if ok, err := w.Revoke(t.Context(), create(t, w.pool, "other"), second.ID); err != nil || ok {
		t.Errorf("another workspace revokes: %t, %v", ok, err)
	}
	if w.judge(t, "bash", bash("git diff")) != permission.Ask {
		t.Error("a revoked pattern applies")
	}
	if entries = w.list(t); len(entries) != 2 || entries[0].RevokedAt == nil || entries[1].RevokedAt != nil {
		t.Errorf("the revocation is not recorded: %+v", entries)
	}
	// A revoked pattern can be added again, with its own origin.
	if err := w.add(t.Context(), permission.Rule{Workspace: w.id, Key: "cli:anna", Pattern: "bash(git diff *)"}); err != nil {
		t.Fatal(err)
	}
	if entries = w.list(t); len(entries) != 3 || entries[2].AddedBy != "cli:anna" || w.judge(t, "bash", bash("git diff")) != permission.Allow {
		t.Errorf("%+v", entries)
	}
}

func TestAddBelongsToItsTransaction(t *testing.T) {
	t.Parallel()
	w := open(t)
	broken := errors.New("broken")
	err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		if err := w.Add(t.Context(), tx, permission.Rule{Workspace: w.id, Pattern: "bash(true)"}); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) || len(w.list(t)) != 0 {
		t.Errorf("%v, and the list has %d entries", err, len(w.list(t)))
	}
	// A rejected pattern leaves the transaction usable.
	err = pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		if f := fault.From(w.Add(t.Context(), tx, permission.Rule{Workspace: w.id, Pattern: "bash(*)"})); f == nil ||
			f.Code != fault.InvalidAllowlistPattern {
			return fmt.Errorf("bash(*): %v", f)
		}
		return w.Add(t.Context(), tx, permission.Rule{Workspace: w.id, Pattern: "bash(true)"})
	})
	if err != nil || len(w.list(t)) != 1 {
		t.Errorf("%v, and the list has %d entries", err, len(w.list(t)))
	}
}

func TestEqualPatternsRaceToOneEntry(t *testing.T) {
	t.Parallel()
	w := open(t)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() { errs <- w.add(t.Context(), permission.Rule{Workspace: w.id, Pattern: "bash(true)"}) })
	}
	wait.Until(t, "all goroutines", wg.Wait)
	for range 8 {
		if err := wait.Receive(t, "an error", errs); err != nil {
			t.Error(err)
		}
	}
	if n := len(w.list(t)); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestAllowListIsBounded(t *testing.T) {
	t.Parallel()
	slow.Test(t, "adds the most patterns")
	w := open(t)
	err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		for i := range permission.MaxEntries {
			if err := w.Add(t.Context(), tx, permission.Rule{Workspace: w.id, Pattern: fmt.Sprintf("bash(echo %d)", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	one := permission.Rule{Workspace: w.id, Pattern: "bash(true)"}
	if f := fault.From(w.add(t.Context(), one)); f == nil || f.Code != fault.InvalidAllowlistPattern ||
		f.Detail.Violations[0].Rule != "max_items" {
		t.Errorf("one more: %v", f)
	}
	if w.judge(t, "bash", bash(fmt.Sprintf("echo %d", permission.MaxEntries-1))) != permission.Allow {
		t.Error("the last entry does not apply")
	}
	if _, err := w.Revoke(t.Context(), w.id, w.list(t)[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := w.add(t.Context(), one); err != nil {
		t.Errorf("one more after one was revoked: %v", err)
	}
}

func TestUsesAreCounted(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, p := range []string{"bash(git diff *)", "bash(git status)"} {
		if err := w.add(t.Context(), permission.Rule{Workspace: w.id, Pattern: p}); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := w.Rules(t.Context(), w.id)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		rules.Judge("bash", bash("git diff"), nil)
		rules.Judge("bash", bash("rm x"), nil)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries := w.list(t)
	if entries[0].Hits != 3 || entries[0].LastHitAt == nil || entries[1].Hits != 0 || entries[1].LastHitAt != nil {
		t.Errorf("%+v", entries)
	}
	// Within the minute, uses are kept in memory.
	rules.Judge("bash", bash("git diff"), nil)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := w.list(t); again[0].Hits != 3 {
		t.Errorf("%+v", again[0])
	}
}

// TestStaleEntriesAllowNothing: entries that an earlier release accepted are read by the rules of
// this one.
func TestStaleEntriesAllowNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, p := range []string{"bash(*)", "bash(git *)", "bash", "", "*"} {
		if _, err := w.pool.Exec(t.Context(),
			`INSERT INTO allowlist (id, workspace_id, tool, pattern, added_by) VALUES ($1, $2, 'bash', $3, 'cli')`, uuid.New(), w.id,
			p); err != nil {
			t.Fatal(err)
		}
	}
	if v := w.judge(t, "bash", bash("git push")); v != permission.Ask {
		t.Errorf("%s", v)
	}
}
