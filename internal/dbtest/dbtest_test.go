package dbtest_test

import (
	"strings"
	"syscall"
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

func TestServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	s := dbtest.NewServer(t, "max_connections=20")
	dsn := s.DSN()
	pool := dbtest.Pool(t, dsn)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE kept AS SELECT 42 AS n`); err != nil {
		t.Fatal(err)
	}
	var limit string
	if err := pool.QueryRow(t.Context(), `SHOW max_connections`).Scan(&limit); err != nil || limit != "20" {
		t.Errorf("max_connections = %s, %v", limit, err)
	}
	s.Kill()
	s.Stop()
	s.Start()
	n := 0
	if err := dbtest.Pool(t, dsn).QueryRow(t.Context(), `SELECT n FROM kept`).Scan(&n); err != nil || n != 42 {
		t.Errorf("kept %d, %v", n, err)
	}
}

// TestServerMayBeFrozen is for those who test what a hanging PostgreSQL does.
func TestServerMayBeFrozen(t *testing.T) {
	t.Parallel()
	s := dbtest.NewServer(t)
	s.Signal(syscall.SIGSTOP)
	s.Signal(syscall.SIGCONT)
	if dsn := s.DSN(); !strings.Contains(dsn, "parley_test_") {
		t.Error(dsn)
	}
}
