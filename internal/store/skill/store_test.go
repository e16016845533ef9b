package skill_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func tenant(t *testing.T, pool *pgxpool.Pool, slug string) uuid.UUID {
	t.Helper()
	w, err := workspace.New(pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

func document(name, body string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: It is %s.\ninterface: {inputs: {a: {type: integer, default: 1}}}\n---\n%s\n", name,
		name, body)
}

func push(t *testing.T, s *skill.Store, ws uuid.UUID, up skill.Upload) skill.Pushed {
	t.Helper()
	p, err := s.Push(t.Context(), ws, up)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// problemsError fails unless err is a fault with this code.
func problemsError(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Code != code {
		t.Fatalf("%v is not %s", err, code)
	}
	return f
}

func TestASkillLives(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := skill.New(pool), tenant(t, pool, "acme")
	active := func(want string) {
		t.Helper()
		k, err := s.Active(t.Context(), ws, "monthly-REPORT")
		if want == "" {
			problemsError(t, err, fault.UnknownSkill)
			return
		}
		if err != nil || k.Name != "monthly_report" || k.Body != want || k.Contract == nil || k.Description != "It is monthly_report." {
			t.Errorf("active: %+v, %v", k, err)
		}
	}
	status := func(want skill.Status, version, newest int) {
		t.Helper()
		list, err := s.List(t.Context(), ws)
		if err != nil || len(list) != 1 || list[0].Status != want || list[0].Version != version || list[0].Newest != newest ||
			list[0].Name != "monthly_report" {
			t.Errorf("%+v, %v", list, err)
		}
	}
	one, two, three := document("monthly_report", "one"), document("monthly_report", "two"), document("monthly_report", "three")

	if p := push(t, s, ws, skill.Upload{Document: one, Draft: true, By: "cli:anna"}); p != (skill.Pushed{Name: "monthly_report", Version: 1,
		Stored: true}) {
		t.Errorf("%+v", p)
	}
	active("")
	status(skill.Draft, 1, 1)
	if p := push(t, s, ws, skill.Upload{Document: one, By: "cli:ben"}); p != (skill.Pushed{Name: "monthly_report", Version: 1, Active: true}) {
		t.Errorf("%+v", p)
	}
	active("one")
	if p := push(t, s, ws, skill.Upload{Document: two, By: "cli:ben"}); p.Version != 2 || !p.Stored || !p.Active {
		t.Errorf("%+v", p)
	}
	active("two")
	if p := push(t, s, ws, skill.Upload{Document: three, Draft: true, By: "cli:ben"}); p.Version != 3 || !p.Stored || p.Active {
		t.Errorf("%+v", p)
	}
	active("two")
	status(skill.Active, 2, 3)
	push(t, s, ws, skill.Upload{Document: three, Draft: true, By: "cli:nobody"}) // changes nothing
	if p, err := s.Publish(t.Context(), ws, "MONTHLY-REPORT", 1, "key:abc"); err != nil || p.Version != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	active("one")
	if p, err := s.Publish(t.Context(), ws, "monthly_report", 0, "cli:anna"); err != nil || p.Version != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := s.Publish(t.Context(), ws, "monthly_report", 3, "cli:nobody"); err != nil { // it already runs
		t.Error(err)
	}
	active("three")
	for range 2 {
		if err := s.Archive(t.Context(), ws, "monthly_report", "cli:anna"); err != nil {
			t.Error(err)
		}
	}
	active("")
	status(skill.Archived, 3, 3)
	if p := push(t, s, ws, skill.Upload{Document: three, By: "cli:ben"}); p.Version != 3 || p.Stored {
		t.Errorf("%+v", p)
	}
	active("three")

	for version, want := range map[int]string{0: three, 1: one, 2: two, 3: three} {
		v, err := s.Get(t.Context(), ws, "Monthly_Report", version)
		if err != nil || v.Document != want || v.Active != (want == three) || v.Status != skill.Active || v.Skill.Contract == nil {
			t.Errorf("version %d: %+v, %v", version, v, err)
		}
	}
	changes, err := s.History(t.Context(), ws, "monthly-report")
	var told []string
	for i, c := range changes {
		version := 0
		if c.Version != nil {
			version = int(*c.Version)
		}
		if i > 0 && c.At.Before(changes[i-1].At) {
			t.Errorf("%v is before %v", c.At, changes[i-1].At)
		}
		told = append(told, fmt.Sprintf("%s %d %s", c.Action, version, c.Actor))
	}
	want := []string{
		"push 1 cli:anna", "publish 1 cli:ben", "push 2 cli:ben", "publish 2 cli:ben", "push 3 cli:ben",
		"publish 1 key:abc", "publish 3 cli:anna", "archive 0 cli:anna", "publish 3 cli:ben",
	}
	if diff := cmp.Diff(want, told); err != nil || diff != "" {
		t.Errorf("history: %v\n%s", err, diff)
	}
}

func TestOneSpellingOfAName(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := skill.New(pool), tenant(t, pool, "acme")
	push(t, s, ws, skill.Upload{Document: document("refund-order", "one"), Draft: true})
	_, err := s.Push(t.Context(), ws, skill.Upload{Document: document("Refund_Order", "two")})
	v := problemsError(t, err, fault.InvalidRequestBody).Detail.Violations[0]
	if v.Rule != "unique" || v.Suggestion != "refund-order" || !strings.Contains(v.Message, `"Refund_Order" is the same name`) ||
		strings.Contains(v.Message, "%!") {
		t.Errorf("%+v", v)
	}
	if _, err := s.Active(t.Context(), ws, "refund-order"); fault.From(err) == nil {
		t.Error("a rejected push has published a version")
	}
	if err := s.Archive(t.Context(), ws, "refund-order", ""); err != nil {
		t.Fatal(err)
	}
	if p := push(t, s, ws, skill.Upload{Document: document("Refund_Order", "two")}); p.Version != 2 {
		t.Errorf("%+v", p)
	}
	if k, err := s.Active(t.Context(), ws, "refund-order"); err != nil || k.Name != "Refund_Order" || k.Body != "two" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestAnUnknownNameGetsTheNearestActiveOnes(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws, other := skill.New(pool), tenant(t, pool, "acme"), tenant(t, pool, "other")
	for _, name := range []string{"weekly-report", "weekly_reports", "Weekly-Reporter", "weekly-export", "weekly-repast", "weekly-resort",
		"onboarding"} {
		push(t, s, ws, skill.Upload{Document: document(name, "x")})
	}
	push(t, s, ws, skill.Upload{Document: document("weekly-repot", "x"), Draft: true})
	push(t, s, ws, skill.Upload{Document: document("weakly-repot", "x")})
	push(t, s, other, skill.Upload{Document: document("weekly-rapot", "x")})
	if err := s.Archive(t.Context(), ws, "weakly-repot", ""); err != nil {
		t.Fatal(err)
	}
	_, err := s.Active(t.Context(), ws, "Weekly_Repot")
	f := problemsError(t, err, fault.UnknownSkill)
	if len(f.Detail.Candidates) != 5 || f.Detail.Candidates[0] != "weekly-report" || slices.Contains(f.Detail.Candidates, "weekly-repot") ||
		f.Param != "skill" || f.Code.Status() != 400 {
		t.Errorf("%+v", f)
	}
	if want := `No active skill named "Weekly_Repot". Did you mean "weekly-report"?`; f.Message != want {
		t.Errorf("%s", f.Message)
	}
	for _, name := range []string{"", "zebra", "a\x00b", "\xff", strings.Repeat("x", 100_000), "weekly--report--x/y", "DROP TABLE skills"} {
		_, err := s.Active(t.Context(), ws, name)
		if f := problemsError(t, err, fault.UnknownSkill); len(f.Message) > 1000 {
			t.Errorf("%.100q: %d bytes", name, len(f.Message))
		}
	}
	_, err = s.Active(t.Context(), ws, "weekly--report")
	if f := problemsError(t, err, fault.UnknownSkill); len(f.Detail.Candidates) == 0 || f.Detail.Candidates[0] != "weekly-report" {
		t.Errorf("%+v", f)
	}
}

func TestWorkspacesDoNotShareSkills(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ours, theirs := skill.New(pool), tenant(t, pool, "ours"), tenant(t, pool, "theirs")
	push(t, s, ours, skill.Upload{Document: document("order", "ours")})
	for name, try := range map[string]func(ctx context.Context, ws uuid.UUID) error{
		"Active":  func(ctx context.Context, ws uuid.UUID) error { _, err := s.Active(ctx, ws, "order"); return err },
		"Get":     func(ctx context.Context, ws uuid.UUID) error { _, err := s.Get(ctx, ws, "order", 1); return err },
		"History": func(ctx context.Context, ws uuid.UUID) error { _, err := s.History(ctx, ws, "order"); return err },
		"Publish": func(ctx context.Context, ws uuid.UUID) error {
			_, err := s.Publish(ctx, ws, "order", 1, "")
			return err
		},
		"Archive": func(ctx context.Context, ws uuid.UUID) error { return s.Archive(ctx, ws, "order", "") },
	} {
		f := problemsError(t, try(t.Context(), theirs), fault.UnknownSkill)
		if len(f.Detail.Candidates) > 0 {
			t.Errorf("%s lists %v", name, f.Detail.Candidates)
		}
		if f := problemsError(t, try(t.Context(), uuid.Nil), fault.UnknownSkill); len(f.Detail.Candidates) > 0 {
			t.Errorf("%s lists %v", name, f.Detail.Candidates)
		}
	}
	if list, err := s.List(t.Context(), theirs); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	push(t, s, theirs, skill.Upload{Document: document("Order", "theirs")})
	if k, err := s.Active(t.Context(), ours, "order"); err != nil || k.Body != "ours" || k.Name != "order" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestVersionsThatAreNotThere(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := skill.New(pool), tenant(t, pool, "acme")
	push(t, s, ws, skill.Upload{Document: document("order", "x")})
	for _, version := range []int{-1, 2, 1 << 32, 1<<32 + 1} {
		_, err := s.Get(t.Context(), ws, "order", version)
		problemsError(t, err, fault.InvalidRequestBody)
		_, err = s.Publish(t.Context(), ws, "order", version, "")
		problemsError(t, err, fault.InvalidRequestBody)
		_, err = s.Get(t.Context(), ws, "ordr", version)
		problemsError(t, err, fault.UnknownSkill)
	}
}

func TestARefusedDocumentTellsEverything(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := skill.New(pool), tenant(t, pool, "acme")
	_, err := s.Push(t.Context(), ws, skill.Upload{Document: "---\nname: a--b\n---\n"})
	f := problemsError(t, err, fault.InvalidRequestBody)
	if len(f.Detail.Violations) != 3 || !strings.HasPrefix(f.Detail.Violations[0].Message, "line 2: ") {
		t.Errorf("%+v", f)
	}
}

// TestPushesAtOnceAreVersionsInARow races pushes of a new skill.
func TestPushesAtOnceAreVersionsInARow(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := skill.New(pool), tenant(t, pool, "acme")
	const n = 8
	pushed, errs := make([]skill.Pushed, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			pushed[i], errs[i] = s.Push(t.Context(), ws, skill.Upload{Document: document("order", fmt.Sprint(i))})
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	seen := make(map[int]bool)
	for i, p := range pushed {
		if errs[i] != nil || !p.Stored || !p.Active || seen[p.Version] {
			t.Errorf("%+v, %v", p, errs[i])
		}
		seen[p.Version] = true
		v, err := s.Get(t.Context(), ws, "order", p.Version)
		if err != nil || v.Body != fmt.Sprint(i) {
			t.Errorf("version %d has the body %q, %v", p.Version, v.Body, err)
		}
	}
	if k, err := s.Active(t.Context(), ws, "order"); err != nil || k.Version != n {
		t.Errorf("%+v, %v", k, err)
	}
}
