package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/workdir"
)

// Run is one attempt at a turn's run. Its calls come one after the other.
type Run struct {
	r    *Runner
	t    Turn
	log  *slog.Logger
	call string // the tool call that is under way

	folder      *workdir.Folder
	dir         string   // where the folder is
	root        *os.Root // of dir
	attachments string   // what users sent; "" before a command needs it
	net         *network
}

// Unavailable says why no command can be run, for the model; "" if they can.
func (x *Run) Unavailable() string {
	if x.r.cfg.Sandbox == nil {
		return "sandbox_unavailable: this server cannot run commands, because it has no sandbox for them. Do without, and say so."
	}
	return ""
}

// Close ends the attempt: what it had open is closed, and its directories go.
func (x *Run) Close() {
	if x == nil {
		return
	}
	if x.net != nil {
		x.net.run.Close()
	}
	if x.root != nil {
		x.root.Close()
	}
	for _, dir := range []string{x.dir, x.attachments} {
		if dir == "" {
			continue
		}
		if err := x.r.remove(dir); err != nil {
			x.log.Warn("remove a run's directory; it is swept at the next start", "err", err)
		}
	}
}

// open brings the session's folder from the database.
func (x *Run) open(ctx context.Context) error {
	if x.folder != nil {
		return nil
	}
	dir, err := x.r.newDir(x.t.Turn.String())
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	x.dir = dir
	if x.root, err = os.OpenRoot(dir); err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	folder, err := x.r.cfg.Folders.Restore(ctx, workdir.Claim{Workspace: x.t.Workspace, Session: x.t.Session, Epoch: x.t.Epoch}, dir)
	if err != nil {
		x.root.Close()
		err = errors.Join(err, x.r.remove(dir))
		x.dir, x.root = "", nil
		return fmt.Errorf("restore the folder: %w", err)
	}
	x.folder = folder
	return nil
}

// save brings what has changed in the folder to the database. Where the folder cannot
// be kept as it is, that is a tool.Refusal, and the database has what it had.
func (x *Run) save(ctx context.Context) (workdir.Saved, error) {
	saved, err := x.folder.Save(ctx)
	if refused, ok := errors.AsType[*workdir.Refusal](err); ok {
		return saved, tool.Refusal(refused.Reason)
	}
	if err != nil {
		return saved, fmt.Errorf("save the folder: %w", err)
	}
	return saved, nil
}

// give makes what this process has put into a folder the property of the user that
// commands run as.
func (x *Run) give(path string) error {
	if x.r.cfg.Sandbox == nil {
		return nil
	}
	return x.r.cfg.Sandbox.Give(path)
}
