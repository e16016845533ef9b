package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/migrations"
)

// cluster is the PostgreSQL that a bench runs on. Every run gets a database of its
// own, so that no run inherits the tables, the dead rows and the vacuum of another.
type cluster struct {
	admin      string // DSN of a database from which others are created
	template   string
	postmaster int           // its process id; 0 if it is not on this machine
	fsync      time.Duration // duration of one durable write; 0 if unknown
	settings   string        // "PostgreSQL 15.18 with fsync on, …"
	durable    bool          // commits survive a crash of the machine
	counts     bool          // pg_stat_statements is available

	server *devdb.Server // nil for an external server
	dir    string
}

// The settings of PostgreSQL that the report always states, and those that were changed. A private
// server has the settings of `serve --dev`.
var (
	settingsAlways  = []string{"fsync", "synchronous_commit", "full_page_writes", "max_wal_size", "shared_buffers"}
	settingsChanged = []string{"max_connections", "shared_preload_libraries", "checkpoint_timeout", "commit_delay", "wal_level",
		"wal_buffers", "wal_compression", "work_mem", "autovacuum", "jit"}
)

// openCluster uses the given server, or starts a private one with fsync on.
func openCluster(ctx context.Context, dsn string, progress func(string)) (*cluster, error) {
	c := &cluster{admin: dsn, template: "parley_bench_" + strings.ToLower(rand.Text()[:8])}
	if dsn == "" {
		if err := c.start(ctx, progress); err != nil {
			return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
		}
	}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, progress func(string)) error {
	// Not below /tmp, which is memory on many systems: fsync would cost nothing there.
	dir, err := os.MkdirTemp("/var/tmp", "parley-bench-")
	if err != nil {
		dir, err = os.MkdirTemp("", "parley-bench-")
	}
	if err != nil {
		return fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user; its data stay private
		return errors.Join(err, os.RemoveAll(dir))
	}
	c.server, err = devdb.Start(ctx, devdb.Options{Dir: dir, Progress: progress})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	c.dir, c.admin = c.server.Dir, c.server.DSN("")
	return c.countStatements(ctx, dir, progress)
}

// countStatements restarts the server with pg_stat_statements, if it is installed.
func (c *cluster) countStatements(ctx context.Context, dir string, progress func(string)) error {
	conn, err := pgx.Connect(ctx, c.server.DSN(""))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var there bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements')`).Scan(&there)
	if err != nil || !there {
		return err
	}
	if err := errors.Join(conn.Close(ctx), c.server.Stop(ctx)); err != nil {
		return err
	}
	server, err := devdb.Start(ctx, devdb.Options{Dir: dir, Progress: progress,
		Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements"}})
	if err == nil {
		c.server = server
	}
	return err
}

// prepare creates the template and reads the properties that affect the figures.
func (c *cluster) prepare(ctx context.Context) error {
	if err := c.exec(ctx, "CREATE DATABASE "+c.template); err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, c.name(c.template), migrations.Options{}); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, c.name(c.template))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, naiveSchema); err != nil {
		return fmt.Errorf("make the naive design's table: %w", err)
	}
	if _, err := conn.Exec(ctx, `CREATE EXTENSION pg_stat_statements`); err == nil { // it may be installed without being loaded
		_, err = conn.Exec(ctx, `SELECT count(*) FROM pg_stat_statements`)
		c.counts = err == nil
	}
	if !c.counts {
		if _, err := conn.Exec(ctx, `DROP EXTENSION IF EXISTS pg_stat_statements`); err != nil {
			return fmt.Errorf("remove pg_stat_statements: %w", err)
		}
	}
	var directory string
	err = conn.QueryRow(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version') || ' with ' ||
		(SELECT string_agg(name || ' ' || current_setting(name), ', ' ORDER BY name) FROM pg_settings
			WHERE name = ANY ($1) OR source IN ('configuration file', 'command line') AND name = ANY ($2)),
		current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off',
		coalesce((SELECT setting FROM pg_settings WHERE name = 'data_directory'), '')`,
		settingsAlways, settingsChanged).Scan(&c.settings, &c.durable, &directory)
	if err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	c.postmaster = postmasterPID(directory)
	if c.postmaster != 0 {
		c.fsync = durableWrite(directory)
	}
	return nil
}

// durableWrite measures the time of a durable write of 8 kB to the disk below PostgreSQL.
func durableWrite(dir string) time.Duration {
	f, err := os.CreateTemp(dir, "parley-bench-")
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 8<<10)
	var all []time.Duration
	for range 60 {
		began := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil || f.Sync() != nil {
			return 0
		}
		all = append(all, time.Since(began))
	}
	return percentile(all, 50)
}

// fresh creates a database with the schema.
func (c *cluster) fresh(ctx context.Context) (dsn string, drop func() error, err error) {
	name := "parley_bench_" + strings.ToLower(rand.Text()[:10])
	if err := c.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+c.template); err != nil {
		return "", nil, err
	}
	return c.name(name), func() error {
		return c.exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func (c *cluster) exec(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// name returns the DSN of another database on the same server.
func (c *cluster) name(database string) string {
	u, err := url.Parse(c.admin)
	if err != nil || u.Scheme == "" {
		return c.admin + " dbname=" + database
	}
	u.Path = "/" + database
	return u.String()
}

// close removes everything that the cluster created.
func (c *cluster) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch {
	case c.server == nil && c.admin == "": // it never started
		return nil
	case c.server == nil:
		return c.exec(ctx, "DROP DATABASE IF EXISTS "+c.template+" WITH (FORCE)")
	}
	if err := c.server.Stop(ctx); err != nil {
		return err
	}
	if err := devdb.Remove(ctx, c.dir); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Clean(c.dir))
}

// openPool opens connections for the bench itself.
func openPool(ctx context.Context, dsn string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = conns, conns
	p, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return p, p.Ping(ctx)
}
