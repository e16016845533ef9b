package migrations_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReplicasStartTogether(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	dsn := dbtest.Empty(t)
	steps, err := migrations.Status(t.Context(), dsn)
	if err != nil || len(migrations.Pending(steps)) != len(steps) || len(steps) == 0 {
		t.Fatalf("an empty database has %d of %d steps pending: %v", len(migrations.Pending(steps)), len(steps), err)
	}

	var wg sync.WaitGroup
	results, errs := make([]migrations.Result, 8), make([]error, 8)
	for i := range results {
		wg.Go(func() { results[i], errs[i] = migrations.Up(t.Context(), dsn, migrations.Options{}) })
	}
	wait.Until(t, "all goroutines", wg.Wait)
	applied := 0
	for i, res := range results {
		if errs[i] != nil {
			t.Errorf("replica %d: %v", i, errs[i])
		}
		applied += res.Applied + res.River
	}
	if applied != len(steps) {
		t.Errorf("%d steps applied, of %d: %v", applied, len(steps), results)
	}

	again, err := migrations.Up(t.Context(), dsn, migrations.Options{})
	if err != nil || again != (migrations.Result{}) || again.String() != "up to date" {
		t.Errorf("second Up: %v, %v", again, err)
	}
	steps, err = migrations.Status(t.Context(), dsn)
	if err != nil || len(migrations.Pending(steps)) != 0 {
		t.Errorf("pending after Up: %v, %v", migrations.Pending(steps), err)
	}
}

// TestOldBinaryLeavesANewerSchemaAlone is the other half of a rolling deployment.
func TestOldBinaryLeavesANewerSchemaAlone(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	pool := dbtest.Pool(t, dsn)
	for _, sql := range []string{
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`,
		`INSERT INTO river_migration (line, version) VALUES ('main', 999)`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	res, err := migrations.Up(t.Context(), dsn, migrations.Options{})
	if err != nil || res != (migrations.Result{}) {
		t.Errorf("Up: %v, %v", res, err)
	}
	steps, err := migrations.Status(t.Context(), dsn)
	if err != nil || len(migrations.Pending(steps)) != 0 {
		t.Errorf("Status: %v, %v", steps, err)
	}
}

// TestWaitingMigrationLetsTrafficPass locks a table with a slow reader. The reader ends only after
// other queries have passed, which they never would behind a waiting ALTER TABLE.
func TestWaitingMigrationLetsTrafficPass(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	dsn := dbtest.Empty(t)
	pool := dbtest.Pool(t, dsn)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE busy (id int)`); err != nil {
		t.Fatal(err)
	}
	reader, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback(context.WithoutCancel(t.Context()))
	if _, err := reader.Exec(t.Context(), `SELECT FROM busy`); err != nil {
		t.Fatal(err)
	}

	met := make(chan struct{}, 100)
	log := slog.New(slog.NewTextHandler(writer(func(line string) {
		if strings.Contains(line, "met a lock") {
			met <- struct{}{}
		}
	}), nil))
	files := fstest.MapFS{"00001_wide.sql": {Data: []byte("-- +goose Up\nALTER TABLE busy ADD COLUMN wide int;\n")}}
	done := make(chan error, 1)
	go func() {
		_, err := migrations.Up(t.Context(), dsn, migrations.Options{Log: log}.With(files))
		done <- err
	}()

	for range 2 {
		select {
		case <-met:
		case err := <-done:
			t.Fatalf("Up returned while the table was held: %v", err)
		}
		for range 20 {
			if _, err := pool.Exec(t.Context(), `SELECT FROM busy`); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := reader.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := wait.Receive(t, "the end", done); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `SELECT wide FROM busy`); err != nil {
		t.Error(err)
	}
}

// TestWaitingReplicaBlocksNoIndex covers the deadlock of a replica that blocks in pg_advisory_lock:
// CREATE INDEX CONCURRENTLY waits for its snapshot.
func TestWaitingReplicaBlocksNoIndex(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	dsn := dbtest.Empty(t)
	pool := dbtest.Pool(t, dsn)
	first, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	if _, err := first.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, migrations.LockKey); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := migrations.Up(ctx, dsn, migrations.Options{})
		done <- err
	}()
	waiting := false
	for !waiting {
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%advisory_lock($1)'
			AND pid <> $1)`, first.Conn().PgConn().PID()).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{`CREATE TABLE big (id int)`, `CREATE INDEX CONCURRENTLY big_id ON big (id)`} {
		if _, err := first.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := wait.Receive(t, "the end", done); !errors.Is(err, context.Canceled) {
		t.Errorf("Up behind a lock, cancelled: %v", err)
	}
	// The session lock ends with the session, not with the pool.
	if _, err := first.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), dsn, migrations.Options{}); err != nil {
		t.Error(err)
	}
}

func TestDownToTakesBackOnlyWhatCanBe(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	dsn := dbtest.Empty(t)
	opts := migrations.Options{}.With(fstest.MapFS{
		"00001_for_ever.sql": {Data: []byte("-- +goose Up\nCREATE TABLE kept (id int);\n")},
		"00002_maybe.sql":    {Data: []byte("-- +goose Up\nCREATE TABLE extra (id int);\n-- +goose Down\nDROP TABLE extra;\n")},
	})
	if res, err := migrations.Up(t.Context(), dsn, opts); err != nil || res.Applied != 2 {
		t.Fatal(res, err)
	}
	if res, err := migrations.DownTo(t.Context(), dsn, 1, opts); err != nil || res.Applied != 1 {
		t.Errorf("down to 1: %v, %v", res, err)
	}
	if _, err := migrations.DownTo(t.Context(), dsn, 0, opts); err == nil || !strings.Contains(err.Error(), "00001_for_ever.sql") {
		t.Errorf("down to 0: %v", err)
	}
	if res, err := migrations.Up(t.Context(), dsn, opts); err != nil || res.Applied != 1 {
		t.Errorf("up again: %v, %v", res, err)
	}
}

func TestHashIsOfEveryByte(t *testing.T) {
	t.Parallel()
	fsys := func(name, text string) fstest.MapFS { return fstest.MapFS{name: {Data: []byte(text)}} }
	seen := map[string]bool{
		migrations.HashOf(fsys("1.sql", "a"), fsys("2.sql", "b")): true,
		migrations.HashOf(fsys("1.sql", "b"), fsys("2.sql", "b")): true,
		migrations.HashOf(fsys("3.sql", "a"), fsys("2.sql", "b")): true,
		migrations.HashOf(fsys("1.sql", "a"), fsys("2.sql", "c")): true,
		migrations.Hash(): true,
	}
	if len(seen) != 5 || seen[""] {
		t.Errorf("hashes collide: %v", seen)
	}
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}
