// Package dbtest gives every test a PostgreSQL database of its own, with the schema. The server is
// that of TEST_DATABASE_URL, else a Docker container, else a private one that all test processes of
// this user share. Databases are copies of a template that is created once for each state of the
// migrations.
//
// If no PostgreSQL is available, the test is skipped, unless PARLEY_TEST_REQUIRE is "all".
package dbtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/testing/need"
)

// maxConns keeps concurrent tests below the server's max_connections.
const maxConns = 8

// New returns a pool on a fresh database, which is dropped when the test ends.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, DSN(t))
}

// Pool opens a small pool and closes it when the test ends. That fails a test that still holds a
// connection.
func Pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = maxConns
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			pool.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Errorf("dbtest: %d connections were never released", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// DSN returns the DSN of a fresh database, which is dropped when the test ends.
func DSN(t testing.TB) string {
	t.Helper()
	admin := server(t)
	template, err := templateOn(context.Background(), admin)
	if err != nil {
		t.Fatalf("dbtest: make the template: %v", err)
	}
	return create(t, admin, template)
}

// Temporary creates a fresh database for a TestMain, which has no testing.TB, and returns the
// function that drops it.
func Temporary() (dsn string, drop func() error, err error) {
	f, err := find()
	if err != nil {
		return "", nil, err
	}
	template, err := templateOn(context.Background(), f.dsn)
	if err != nil {
		return "", nil, fmt.Errorf("make the template: %w", err)
	}
	name := newName()
	if err := execute(f.dsn, "CREATE DATABASE "+name+" "+template); err != nil {
		return "", nil, err
	}
	return withDatabase(f.dsn, name), func() error { return execute(f.dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") }, nil
}

// Empty returns the DSN of a fresh database without the schema.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, server(t), "TEMPLATE template0")
}

func server(t testing.TB) string {
	t.Helper()
	f, err := find()
	if err != nil {
		unavailable(t, err)
	}
	return f.dsn
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	need.Missing(t, "dbtest: no PostgreSQL: %v", err)
}

func create(t testing.TB, admin, from string) string {
	t.Helper()
	name := newName()
	if err := execute(admin, "CREATE DATABASE "+name+" "+from); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return withDatabase(admin, name)
}

// newName contains the time of creation, by which sweep recognizes forgotten databases.
func newName() string {
	return fmt.Sprintf("%s%d_%s", testPrefix, time.Now().Unix(), strings.ToLower(rand.Text()[:10]))
}

// execute opens a connection for one statement: goleak would report a pool that outlives the tests.
func execute(dsn, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err = conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
