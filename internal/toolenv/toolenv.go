// Package toolenv is the environment of a turn's tools: commands in a sandbox, the session's
// folder, requests with credentials. It owns the list of hosts that a workspace's tools may reach,
// and the record of their requests.
//
// It promises that a credential's value is in no command, no file, no output and no error: a run
// contains placeholders, and only a request on its way to one of the credential's hosts carries the
// value; that every change of a tool call to the folder is in PostgreSQL before its result is; and
// that no part of a run outlives its attempt. It never runs a command outside a sandbox.
package toolenv

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/toolenv/remote"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/scratch"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// DefaultCommands is how many commands a process runs at once.
const DefaultCommands = 16

// Config configures a Runner. Pool to Files are required; for the records alone, and the policy of
// hosts, the Pool is enough.
type Config struct {
	Pool    *pgxpool.Pool
	Guard   *egress.Guard
	Vault   *vault.Store
	Folders *workdir.Store
	Files   *filestore.Store
	// Sandbox runs commands. Without it and Remote commands cannot run, and every other tool works.
	Sandbox *sandbox.Sandbox
	// Remote runs commands in the sandbox of another process, if Sandbox is nil.
	Remote *remote.Client
	// Dir is the parent of the folders while a turn works on them; default: the sandbox's, or the
	// system's temporary directory. Its contents are not needed afterwards.
	Dir      string
	Commands int           // concurrent commands; default DefaultCommands
	Audit    time.Duration // how long records of requests are kept; default 400 days
	Log      *slog.Logger
	Metrics  *metrics.Metrics // nil: nothing is counted outside
}

// Runner opens runs. It is safe for concurrent use.
type Runner struct {
	cfg   Config
	q     *db.Queries
	log   *slog.Logger
	slots *fair.Places // one for each running command
	kept  kept

	mu      sync.Mutex
	scratch *scratch.Dir // parent of the folders without Sandbox; nil: not made yet
}

// New returns a runner.
func New(cfg Config) *Runner {
	cfg.Audit = cmp.Or(cfg.Audit, 400*24*time.Hour)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	return &Runner{cfg: cfg, q: db.New(replan.Pool{Pool: cfg.Pool}), log: cfg.Log, slots: fair.New(cmp.Or(cfg.Commands, DefaultCommands))}
}

// Turn identifies the turn of a run.
type Turn struct {
	Workspace, Session, Turn uuid.UUID
	Epoch                    int64    // the lease under which it runs
	Credentials              []string // names of the credentials that the run may use
}

// Open begins an attempt at a turn's run without any work: each tool call creates the parts it
// needs. A nil Runner has nil runs.
func (r *Runner) Open(t Turn) *Run {
	if r == nil {
		return nil
	}
	return &Run{r: r, t: t, log: r.log.With("session", t.Session, "turn", t.Turn)}
}

// forgetEvery is the pause between two checks for expired folders.
const forgetEvery = 5 * time.Second

// Run removes the folders that a killed process left, and then expired data until ctx ends: folders
// that were kept for a turn that did not come, and old records of requests. Then it removes every
// folder.
func (r *Runner) Run(ctx context.Context) error {
	if r.cfg.Sandbox == nil { // a sandbox has done so when it was opened
		if _, err := r.openScratch(); err != nil {
			r.log.WarnContext(ctx, "make a directory for the folders of sessions; the next turn with files tries again", "err", err)
		}
	}
	next := time.NewTimer(rand.N(time.Hour / 10)) // replicas that start together need not run it together
	defer next.Stop()
	look := time.NewTicker(forgetEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			r.removePlaces(r.kept.removeBefore(time.Now())...)
			return r.closeScratch()
		case now := <-look.C:
			r.removePlaces(r.kept.removeBefore(now.Add(-keepTime))...)
			if err := r.removeErased(ctx); err != nil && ctx.Err() == nil {
				r.log.WarnContext(ctx, "drop the folders of erased sessions; another try follows", "err", err)
			}
		case <-next.C:
			if err := r.removeOldRecords(ctx); err != nil && ctx.Err() == nil {
				r.log.WarnContext(ctx, "remove old requests from the record; another try follows in an hour", "err", err)
			}
			next.Reset(time.Hour)
		}
	}
}

// Erase deletes the records of a session's requests, and its folder if this process has kept it.
func (r *Runner) Erase(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error {
	if p, ok := r.kept.takePlace(session); ok {
		r.removePlaces(p)
	}
	if err := r.q.WithTx(tx).EgressRequestsErase(ctx, workspace, session); err != nil {
		return fmt.Errorf("erase the record of requests: %w", err)
	}
	return nil
}

// newDir makes a directory for a run that commands can write to.
func (r *Runner) newDir(name string) (string, error) {
	if r.cfg.Sandbox != nil {
		return r.cfg.Sandbox.NewFolder(name)
	}
	parent, err := r.openScratch()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, filepath.Base(name)+"-")
}

// openScratch returns the parent of the folders without a sandbox. It makes another one if a cleaner
// of temporary directories has removed it.
func (r *Runner) openScratch() (path string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scratch != nil && !r.scratch.IsPresent() {
		_ = r.scratch.Close()
		r.scratch = nil
	}
	if r.scratch == nil {
		if r.scratch, err = scratch.New(cmp.Or(r.cfg.Dir, os.TempDir()), "parley-folders-", os.RemoveAll, r.log); err != nil {
			return "", err
		}
	}
	return r.scratch.Path(), nil
}

// closeScratch removes the folders that are left.
func (r *Runner) closeScratch() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scratch == nil {
		return nil
	}
	err := r.scratch.Close()
	r.scratch = nil
	return err
}

// removeDir removes a directory made by newDir.
func (r *Runner) removeDir(dir string) error {
	if r.cfg.Sandbox != nil {
		return r.cfg.Sandbox.Remove(dir)
	}
	return os.RemoveAll(dir)
}
