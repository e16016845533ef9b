//go:build unix

package dbtest_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/migrations"
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
	slow.Test(t, "starts PostgreSQL")
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
	s.Crash()
	s.Start()
	n := 0
	if err := dbtest.Pool(t, dsn).QueryRow(t.Context(), `SELECT n FROM kept`).Scan(&n); err != nil || n != 42 {
		t.Errorf("kept %d, %v", n, err)
	}
}

// TestLeftoversAreSweptUp creates what killed test runs leave: an old database, a young one that
// may still be in use, and an incomplete template.
func TestLeftoversAreSweptUp(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	s := dbtest.NewServer(t)
	admin := dbtest.Pool(t, s.Admin())
	young := fmt.Sprintf("parley_test_%d_young", time.Now().Unix())
	for _, name := range []string{"parley_test_1700000000_old", young, "parley_template_" + migrations.Hash()} {
		if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
	}
	pool := dbtest.Pool(t, s.DSN())
	if _, err := pool.Exec(t.Context(), `SELECT FROM sessions`); err != nil {
		t.Errorf("copied from an unfinished template: %v", err)
	}
	rows, err := admin.Query(t.Context(), `SELECT datname::text FROM pg_database WHERE datname LIKE 'parley_test%' AND datname <> $1`,
		pool.Config().ConnConfig.Database)
	if err != nil {
		t.Fatal(err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(left, []string{young}) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestServerMayBeFrozen checks the fixture for tests of a hanging PostgreSQL.
func TestServerMayBeFrozen(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	s := dbtest.NewServer(t)
	s.Signal(syscall.SIGSTOP)
	s.Signal(syscall.SIGCONT)
	if dsn := s.DSN(); !strings.Contains(dsn, "parley_test_") {
		t.Error(dsn)
	}
}
