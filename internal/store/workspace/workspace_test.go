package workspace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUpdateChangesWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	s := workspace.New(dbtest.New(t))
	before, err := s.Create(t.Context(), "acme", "Acme", "Be kind.")
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Model, want.MaxRunning, want.HistoryTokens = new("openai/gpt-5-mini"), 3, new(0)
	got, err := s.Update(t.Context(), before.ID, workspace.Change{Model: want.Model, MaxRunning: new(3), HistoryTokens: new(0)})
	want.UpdatedAt = got.UpdatedAt
	if diff := cmp.Diff(want, got); err != nil || diff != "" || !got.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("update: %v\n%s", err, diff)
	}
	if got, err := s.Update(t.Context(), before.ID, workspace.Change{Model: new("")}); err != nil || got.Model != nil || got.MaxRunning != 3 {
		t.Errorf("the service's own model again: %+v, %v", got, err)
	}
	for limit, stored := range map[int]*int{5: new(5), 0: new(0), -1: nil} {
		got, err := s.Update(t.Context(), before.ID, workspace.Change{MessagesPerMinute: &limit, CallsPerMinute: &limit,
			OpenStreams: &limit, HistoryTokens: &limit})
		if err != nil || !cmp.Equal(got.MessagesPerMinute, stored) || !cmp.Equal(got.CallsPerMinute, stored) ||
			!cmp.Equal(got.OpenStreams, stored) || !cmp.Equal(got.HistoryTokens, stored) {
			t.Errorf("limits of %d: %+v, %v", limit, got, err)
		}
	}
	if found, err := s.Find(t.Context(), "acme"); err != nil || found.Name != "Acme" || found.Instructions != "Be kind." {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestAChangeIsRefusedWithEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	s := workspace.New(dbtest.New(t))
	bad := workspace.Change{
		Name: new(" "), Instructions: new("\x00"), Model: new("gpt"),
		MaxResponseSeconds: new(3601), MaxTurns: new(0), MaxRunning: new(0), HistoryTokens: new(-2),
		MessagesPerMinute: new(-2), CallsPerMinute: new(-2), OpenStreams: new(-2), StorageQuota: new(-1),
		SearchLanguage: new("klingon"),
	}
	_, err := s.Add(t.Context(), "No Slug", bad)
	if f := fault.From(err); f == nil || len(f.Detail.Violations) != 13 {
		t.Errorf("add: %v", err)
	}
	w, err := s.Add(t.Context(), "acme", workspace.Change{MaxTurns: new(200), MaxResponseSeconds: new(3600)})
	if err != nil || w.Name != "acme" || w.MaxTurns != 200 || w.MaxRunning != 64 || w.StorageQuota != 10<<30 {
		t.Fatalf("add: %+v, %v", w, err)
	}
	_, err = s.Update(t.Context(), w.ID, bad)
	if f := fault.From(err); f == nil || len(f.Detail.Violations) != 12 {
		t.Errorf("update: %v", err)
	}
	if after, err := s.Find(t.Context(), "acme"); err != nil || !cmp.Equal(w, after) {
		t.Errorf("a rejected change changed %+v to %+v, %v", w, after, err)
	}
	if _, err := s.Add(t.Context(), "acme", workspace.Change{}); fault.From(err) == nil {
		t.Errorf("added twice: %v", err)
	}
}

// TestSearchLanguagesAreThoseOfTheDatabase sets every language, and compares the list with the
// constraint of the column.
func TestSearchLanguagesAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := workspace.New(pool)
	w, err := s.Create(t.Context(), "acme", "Acme", "")
	if err != nil || w.SearchLanguage != "english" {
		t.Fatalf("created %+v, %v", w, err)
	}
	for _, language := range workspace.SearchLanguages {
		if got, err := s.Update(t.Context(), w.ID, workspace.Change{SearchLanguage: &language}); err != nil || got.SearchLanguage != language {
			t.Errorf("%s: %+v, %v", language, got, err)
		}
	}
	var listed []string
	if err := pool.QueryRow(t.Context(),
		`SELECT array_agg(m[1] ORDER BY m[1]) FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''([a-z]+)''', 'g') m
		WHERE conname = 'workspaces_search_language_check'`).Scan(&listed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed, workspace.SearchLanguages); diff != "" {
		t.Errorf("the database and SearchLanguages differ:\n%s", diff)
	}
}

// TestRecentNoticesChanges changes a workspace in the same process and in another one.
func TestRecentNoticesChanges(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	here, elsewhere := workspace.New(pool), workspace.New(pool)
	w, err := here.Create(t.Context(), "acme", "Acme", "Be kind.")
	if err != nil {
		t.Fatal(err)
	}
	turns := func() int {
		t.Helper()
		got, err := here.Recent(t.Context(), w.ID)
		if err != nil || got.Slug != "acme" || got.Instructions != "" {
			t.Fatalf("recent: %+v, %v", got, err)
		}
		return got.MaxTurns
	}
	turns()
	if _, err := here.Update(t.Context(), w.ID, workspace.Change{MaxTurns: new(7)}); err != nil || turns() != 7 {
		t.Errorf("after a change in this process: %d turns, %v", turns(), err)
	}
	if _, err := elsewhere.Update(t.Context(), w.ID, workspace.Change{MaxTurns: new(9)}); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "a change elsewhere applies", func() bool { return turns() == 9 })
	if _, err := here.Recent(t.Context(), uuid.New()); fault.From(err) == nil {
		t.Errorf("a workspace that does not exist: %v", err)
	}
}
