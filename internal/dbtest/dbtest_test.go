package dbtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEveryTestHasADatabaseOfItsOwn writes the same key many times.
func TestEveryTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			if _, err := pool.Exec(t.Context(), `CREATE TABLE mine (id int PRIMARY KEY)`); err != nil {
				t.Fatal(err)
			}
			var sessions, jobs int
			err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM river_job)`).Scan(&sessions, &jobs)
			if err != nil || sessions != 0 || jobs != 0 {
				t.Errorf("%d sessions, %d jobs, %v in a fresh database", sessions, jobs, err)
			}
		})
	}
}
