package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/migrations"
)

const (
	templatePrefix = "parley_template_"
	testPrefix     = "parley_test_" // followed by the time of creation
)

// templateKey is the advisory lock under which one process creates the template.
const templateKey = 0x7061726c657974 // "parleyt"

// stale is longer than any test run.
const stale = 24 * time.Hour

var made struct {
	sync.Mutex
	on map[string]template // by server
}

type template struct {
	name   string
	clause string // copies it, in CREATE DATABASE
	err    error
}

// templateOn returns the clause of CREATE DATABASE that copies the template. It creates the
// template once a day: the migrations create the partitions of their day. A schema that cannot be
// created fails every test, but takes its time only once per process.
func templateOn(ctx context.Context, admin string) (string, error) {
	made.Lock()
	defer made.Unlock()
	name := templatePrefix + migrations.Hash() + time.Now().UTC().Format("_20060102")
	t := made.on[admin]
	if t.name != name {
		clause, err := ensure(ctx, admin, name)
		t = template{name, clause, err}
		if made.on == nil {
			made.on = map[string]template{}
		}
		made.on[admin] = t
	}
	return t.clause, t.err
}

// ensure creates a complete template if necessary: one that accepts no connections.
func ensure(ctx context.Context, admin, name string) (clause string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // frees the lock
	if err := lock(ctx, conn); err != nil {
		return "", err
	}
	if err := sweep(ctx, conn, name); err != nil {
		return "", fmt.Errorf("drop old test databases: %w", err)
	}
	var complete, syncs bool
	err = conn.QueryRow(ctx,
		`SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND NOT datallowconn), current_setting('fsync')::bool`, name).
		Scan(&complete, &syncs)
	if err == nil && !complete {
		err = build(ctx, conn, admin, name)
	}
	clause = "TEMPLATE " + name
	if !syncs { // copying files takes 25 ms of processor time, logging their pages takes 107 ms
		clause += " STRATEGY FILE_COPY"
	}
	return clause, err
}

// lock polls as migrations do: a session that blocks in a lock holds a snapshot.
func lock(ctx context.Context, conn *pgx.Conn) error {
	for {
		var got bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, templateKey).Scan(&got); err != nil || got {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func build(ctx context.Context, conn *pgx.Conn, admin, name string) error {
	for _, sql := range []string{
		"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", // incomplete, of a process that died
		"CREATE DATABASE " + name + " TEMPLATE template0",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if _, err := migrations.Up(ctx, withDatabase(admin, name), migrations.Options{}); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "ALTER DATABASE "+name+" WITH ALLOW_CONNECTIONS false")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("COMMENT ON DATABASE %s IS '%d'", name, time.Now().Unix()))
	return err
}

// sweep drops what killed test runs and earlier states of the schema left behind.
func sweep(ctx context.Context, conn *pgx.Conn, current string) error {
	rows, err := conn.Query(ctx, `
		SELECT datname, COALESCE(shobj_description(oid, 'pg_database'), '')
		FROM pg_database WHERE starts_with(datname, $1) OR starts_with(datname, $2)`, templatePrefix, testPrefix)
	if err != nil {
		return err
	}
	old := map[string]bool{}
	var name, comment string
	_, err = pgx.ForEachRow(rows, []any{&name, &comment}, func() error {
		if after, ok := strings.CutPrefix(name, testPrefix); ok {
			comment, _, _ = strings.Cut(after, "_")
		}
		at, err := strconv.ParseInt(comment, 10, 64)
		old[name] = err == nil && time.Since(time.Unix(at, 0)) > stale && name != current
		return nil
	})
	if err != nil {
		return err
	}
	for name, old := range old {
		if !old {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	return nil
}

// withDatabase returns the DSN of another database on the same server.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " dbname=" + name // keywords: the last value counts
	}
	u.Path = "/" + name
	return u.String()
}
