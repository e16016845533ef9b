package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/vault"
	"github.com/parley-server/parley/internal/workspace"
)

// world is one run's servers on a database of their own, and a client of them.
type world struct {
	mode      string
	pool      *pgxpool.Pool // of the bench itself; nil for raw
	workspace workspace.Workspace
	client    *client

	postmaster int
	children   []*child
	drop       func() error
}

// slug is the workspace that every run works in.
const slug = "bench"

// open starts what a mode needs. workers is how many turns run at once; 0 leaves the
// turns queued.
func (b *bench) open(ctx context.Context, mode string, workers int) (w *world, err error) {
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
		if w.pool, err = pool(ctx, dsn, 4); err != nil {
			return w, err
		}
		if key, err = w.tenant(ctx); err != nil {
			return w, err
		}
	}
	tasks := []task{{Mode: mode, DSN: dsn, HTTP: true, Workers: workers}}
	if mode == Remote {
		tasks = []task{{Mode: mode, DSN: dsn, HTTP: true}, {Mode: mode, DSN: dsn, Workers: workers}}
	}
	master := vault.GenerateKey()
	for i, t := range tasks {
		t.Key = master
		if b.profiles != "" {
			t.Profile = filepath.Join(b.profiles, fmt.Sprintf("%s-%d-%d.pprof", mode, time.Now().UnixMilli(), i))
		}
		c, err := spawn(ctx, t)
		if err != nil {
			return w, err
		}
		w.children = append(w.children, c)
	}
	w.client, err = newClient(w.children[0].URL, slug, key)
	return w, err
}

// newWorkspace makes the workspace, with room for everything that a run does.
func newWorkspace(ctx context.Context, p *pgxpool.Pool) (workspace.Workspace, error) {
	ws, err := workspace.New(p).Create(ctx, slug, "", "")
	if err != nil {
		return ws, err
	}
	const room = `UPDATE workspaces SET max_running = 1000000, messages_per_minute = 0, calls_per_minute = 0, open_streams = 0`
	if _, err := p.Exec(ctx, room); err != nil {
		return ws, fmt.Errorf("give the workspace room: %w", err)
	}
	return ws, nil
}

// tenant makes the workspace and a key.
func (w *world) tenant(ctx context.Context) (key string, err error) {
	if w.workspace, err = newWorkspace(ctx, w.pool); err != nil {
		return "", err
	}
	_, key, err = apikey.New(w.pool, nil).Create(ctx, apikey.Grant{Workspace: w.workspace.ID, Name: slug,
		Scopes: apikey.Scopes{apikey.Chat, apikey.SessionsRead}})
	return key, err
}

// usage is the processor time of the servers and of PostgreSQL so far.
func (w *world) usage() (usage, error) {
	total := usage{Known: true}
	for _, c := range w.children {
		line, err := c.ask("figures")
		if err != nil {
			return usage{}, err
		}
		total = total.plus(line.CPU)
	}
	if w.mode == Raw {
		return total, nil
	}
	return total.plus(postgresUsage(w.postmaster)), nil
}

// close stops the servers, newest first, and drops the database.
func (w *world) close() error {
	var errs []error
	for i := len(w.children) - 1; i >= 0; i-- {
		errs = append(errs, w.children[i].stop())
	}
	if w.pool != nil {
		w.pool.Close()
	}
	return errors.Join(append(errs, w.drop())...)
}
