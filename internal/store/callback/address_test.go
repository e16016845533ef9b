package callback_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/store/callback"
)

// tablesWith lists the tables that contain a text.
func (w *world) tablesWith(t *testing.T, text string) (found []string) {
	t.Helper()
	rows, err := w.pool.Query(t.Context(), `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		var n int
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` t WHERE position($1 IN t::text) > 0`, text).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}

func TestNoTableHoldsTheTokenOfAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const token = "hush-4711"
	n := w.register(t, "https://example.com/hooks/"+token+"?token="+token, nil)
	named := n
	named.ID, named.Name = uuid.Must(uuid.NewV7()), "second"
	for range 2 { // the second time changes it
		if err := w.store.Put(t.Context(), named); err != nil {
			t.Fatal(err)
		}
	}
	if found := w.tablesWith(t, token); len(found) > 0 {
		t.Errorf("the token is in %v", found)
	}
	if err := w.store.Remove(t.Context(), w.workspace, n.Turn, named.Name); err != nil {
		t.Fatal(err)
	}
	w.deliver(t, w.report(t, n.Turn, callback.Completed, 1))
	if all := w.receiver.all(); len(all) != 1 || all[0].path != "/hooks/"+token+"?token="+token {
		t.Errorf("%d reports, %+v", len(all), all)
	}
	if found := w.tablesWith(t, token); len(found) > 0 {
		t.Errorf("after a delivery the token is in %v", found)
	}
}

// TestAddressOfThePreviousReleaseIsSealed lets processes of the previous release create and change
// callbacks beside this one.
func TestAddressOfThePreviousReleaseIsSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, changed := w.register(t, address, nil), w.register(t, address, nil)
	w.exec(t, `UPDATE callbacks SET url = $1, address = NULL WHERE id = $2`, "https://example.com/made?token=hush", made.ID)
	w.exec(t, `UPDATE callbacks SET url = $1 WHERE id = $2`, "https://example.com/changed?token=hush", changed.ID)
	for round := range 2 {
		for i, c := range []struct {
			callback.New
			path string
		}{{made, "/made"}, {changed, "/changed"}} {
			w.deliver(t, w.report(t, c.Turn, callback.Completed, int64(round+1)))
			all := w.receiver.all()
			if len(all) != 2*round+i+1 || all[len(all)-1].path != c.path+"?token=hush" {
				t.Fatalf("round %d: %d reports, %+v", round, len(all), all)
			}
			if got := w.get(t, c.ID); got.URL != "https://example.com"+c.path+"?…" {
				t.Errorf("round %d: shown as %s", round, got.URL)
			}
		}
		if err := w.store.SealAddresses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := w.tablesWith(t, "token=hush"); len(found) > 0 {
			t.Errorf("the token is in %v", found)
		}
	}
	list, err := w.store.List(t.Context(), w.workspace, "", "", 10)
	if err != nil || len(list.Data) != 4 || !strings.HasSuffix(list.Data[0].URL, "?…") {
		t.Errorf("%+v, %v", list, err)
	}
}
