package migrations_test

import (
	"testing"

	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/migrations"
)

// TestOldDefaultOfHistoryTokensFollowsTheWindow migrates workspaces with the old default of
// history_tokens and with another number. No version is published, and a server of the release before
// still reads a number.
func TestOldDefaultOfHistoryTokensFollowsTheWindow(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	dsn := dbtest.Empty(t)
	if _, err := migrations.Up(t.Context(), dsn, migrations.Options{}.With(filesUpTo(t, 64))); err != nil {
		t.Fatal(err)
	}
	pool := dbtest.Pool(t, dsn)
	if _, err := pool.Exec(t.Context(), `INSERT INTO workspaces (id, slug, name, instructions, history_tokens) VALUES
		(gen_random_uuid(), 'usual', 'u', '', DEFAULT), (gen_random_uuid(), 'bounded', 'b', '', 1000)`); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), dsn, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(),
		`INSERT INTO workspaces (id, slug, name, instructions) VALUES (gen_random_uuid(), 'new', 'n', '')`); err != nil {
		t.Fatal(err)
	}
	for slug, want := range map[string]int{"usual": -1, "bounded": 1000, "new": -1} {
		w, err := workspace.New(pool).Find(t.Context(), slug)
		if err != nil {
			t.Fatal(err)
		}
		var stored, published int32
		var number int
		if err := pool.QueryRow(t.Context(),
			`SELECT w.history_tokens, v.history_tokens, v.number FROM workspaces w JOIN agents a ON a.workspace_id = w.id
			JOIN agent_versions v ON v.id = a.published_id WHERE w.id = $1`, w.ID).Scan(&stored, &published, &number); err != nil {
			t.Fatal(err)
		}
		got := -1
		if w.HistoryTokens != nil {
			got = *w.HistoryTokens
		}
		if got != want || stored != published || number != 1 || (want < 0) != (agent.ParseHistory(stored) == nil) {
			t.Errorf("%s has history_tokens %d, stored as %d and in version %d as %d", slug, got, stored, number, published)
		}
	}
}
