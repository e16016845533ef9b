package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
)

// world is one run's servers on a database of their own, and their client.
type world struct {
	mode      string
	pool      *pgxpool.Pool // the bench's own pool; nil for raw
	workspace workspace.Workspace
	client    *client

	postmaster int
	counts     bool // pg_stat_statements is available
	children   []*child
	drop       func() error
}

// slug is the workspace of every run.
const slug = "bench"

// The defaults of PARLEY_WORKERS and PARLEY_MODEL_CALLS for one process, and of max_running for one
// workspace.
const (
	defaultWorkers = 100
	defaultRunning = 64
	noTurns        = -1 // turns stay queued
)

// workerSetting returns the setting for so many turns of one workspace at once: a workspace may use
// three of four places (docs/reference/limits.md). It is raised only above its default.
func workerSetting(running int) int {
	if running == noTurns {
		return 0
	}
	return max(running*4/3+1, defaultWorkers)
}

// open starts the servers of a mode for so many turns at once, with default limits if they are
// sufficient. The service's tools may reach the hosts of allow.
func (b *bench) open(ctx context.Context, mode string, running int, allow ...string) (w *world, err error) {
	w = &world{mode: mode, drop: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	dsn, key := "", ""
	if mode != Raw {
		if dsn, w.drop, err = b.cluster.fresh(ctx); err != nil {
			return w, err
		}
		w.postmaster = b.cluster.postmaster
		if w.pool, err = openPool(ctx, dsn, 4); err != nil {
			return w, err
		}
		if w.counts, err = countsStatements(ctx, w.pool); err != nil {
			return w, err
		}
		if key, err = w.tenant(ctx, running); err != nil {
			return w, err
		}
	}
	both := task{Mode: mode, DSN: dsn, HTTP: true, Workers: workerSetting(running), Volatile: !b.cluster.durable, Allow: allow}
	tasks := []task{both}
	if mode == Remote {
		tasks = []task{both, both}
		tasks[0].Workers, tasks[1].HTTP = 0, false
	}
	master := vault.GenerateKey()
	for i, t := range tasks {
		t.Key = master
		if b.profiles != "" {
			t.Profile = filepath.Join(b.profiles, fmt.Sprintf("%s-%d-%d.pprof", mode, time.Now().UnixMilli(), i))
		}
		c, err := spawnServer(ctx, t)
		if err != nil {
			return w, err
		}
		w.children = append(w.children, c)
	}
	w.client, err = newClient(w.children[0].URL, slug, key)
	return w, err
}

// keyLimits is the limit of messages and calls per minute and of streams for the one key that sends
// the whole load: the maximum of a workspace. The limits remain enabled, so requests are counted as
// in production.
const keyLimits = 1_000_000

// newWorkspace creates the workspace as `parley workspace create` does, with room for so many turns
// at once.
func newWorkspace(ctx context.Context, p *pgxpool.Pool, running int) (workspace.Workspace, error) {
	limits := workspace.Change{MessagesPerMinute: new(keyLimits), CallsPerMinute: new(keyLimits), OpenStreams: new(keyLimits)}
	if running > defaultRunning {
		limits.MaxRunning = &running
	}
	return workspace.New(p).Add(ctx, slug, limits)
}

// tenant creates the workspace and a key.
func (w *world) tenant(ctx context.Context, running int) (key string, err error) {
	if w.workspace, err = newWorkspace(ctx, w.pool, running); err != nil {
		return "", err
	}
	_, key, err = apikey.New(w.pool, nil).Create(ctx, apikey.Grant{Workspace: w.workspace.ID, Name: slug,
		Scopes: apikey.Scopes{apikey.Chat, apikey.SessionsRead}})
	return key, err
}

// stop ends the servers, newest first. Afterwards PostgreSQL's statistics are complete.
func (w *world) stop() error {
	var errs []error
	for i := len(w.children) - 1; i >= 0; i-- {
		errs = append(errs, w.children[i].stop())
	}
	w.children = nil
	return errors.Join(errs...)
}

// close stops the servers and drops the database.
func (w *world) close() error {
	errs := []error{w.stop()}
	if w.pool != nil {
		w.pool.Close()
	}
	return errors.Join(append(errs, w.drop())...)
}
