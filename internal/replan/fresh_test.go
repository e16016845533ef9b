package replan_test

import (
	"testing"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestFreshKeepsNoPlan shows the difference from Pool: no statement is prepared.
func TestFreshKeepsNoPlan(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t, dbtest.Empty(t)+"&pool_max_conns=1")
	const prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE $1"
	for range 3 {
		var n, m int
		if err := (replan.Fresh{Pool: pool}).QueryRow(t.Context(), prepared, "%pg_prepared_statements%").Scan(&n); err != nil || n != 0 {
			t.Fatalf("Fresh prepared %d statements: %v", n, err)
		}
		if _, err := (replan.Fresh{Pool: pool}).Exec(t.Context(), prepared, "%"); err != nil {
			t.Fatal(err)
		}
		rows, err := replan.Fresh{Pool: pool}.Query(t.Context(), prepared, "%")
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
		if err := (replan.Fresh{Pool: pool}).QueryRow(t.Context(), prepared, "%").Scan(&m); err != nil || m != 0 {
			t.Fatalf("Fresh prepared %d statements: %v", m, err)
		}
	}
	var n int
	if err := (replan.Pool{Pool: pool}).QueryRow(t.Context(), prepared, "%pg_prepared_statements%").Scan(&n); err != nil || n != 1 {
		t.Errorf("Pool prepared %d statements: %v", n, err)
	}
}
