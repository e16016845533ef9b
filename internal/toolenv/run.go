package toolenv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Run is one attempt at a turn's run. Its calls are sequential.
type Run struct {
	r    *Runner
	t    Turn
	log  *slog.Logger
	call string // the running tool call

	place              // the session's folder; unset before a command needs it
	dirty       bool   // the folder has unsaved changes
	attachments string // files that users sent; "" before a command needs them
	net         *network
	routes      map[string]*network // to tool servers, by host and credentials
	closers     []func()
	records     background
	refused     refusals
}

// Unavailable returns the reason why commands cannot run, for the model; "" if they can.
func (x *Run) Unavailable() string {
	if x.r.cfg.Sandbox == nil && x.r.cfg.Remote == nil {
		return "sandbox_unavailable: this server cannot run commands, because it has no sandbox for them. Do without, and say so."
	}
	return ""
}

// Close ends the attempt and closes everything it has opened.
func (x *Run) Close() {
	if x == nil {
		return
	}
	x.Release()
	x.records.finish()
}

// Release ends the requests of the attempt and its use of the folder, so that another attempt can
// follow. A folder without unsaved changes is kept for a while. Only Close may follow.
func (x *Run) Release() {
	if x == nil {
		return
	}
	x.closeRoutes()
	if x.net != nil {
		x.net.run.Close()
		x.net = nil
	}
	x.flushRefusals()
	if x.attachments != "" {
		if err := x.r.removeDir(x.attachments); err != nil {
			x.log.Warn("remove attachments; they are swept at the next start", "err", err)
		}
		x.attachments = ""
	}
	switch x.since = time.Now(); {
	case x.folder == nil:
	case x.dirty:
		x.r.removePlaces(x.place)
	default:
		x.r.removePlaces(x.r.kept.keepPlace(x.t.Session, x.place)...)
	}
	x.place = place{}
}

// openFolder opens the session's folder: the copy that this process kept, unless another process
// has saved it since, or the one in the database.
func (x *Run) openFolder(ctx context.Context) error {
	if x.folder != nil {
		return nil
	}
	claim := workdir.Claim{Workspace: x.t.Workspace, Session: x.t.Session, Epoch: x.t.Epoch}
	if p, ok := x.r.kept.takePlace(x.t.Session); ok {
		current, err := p.folder.Lease(ctx, claim)
		if current && p.isPresent() {
			x.place = p
			return nil
		}
		x.r.removePlaces(p)
		if err != nil {
			return err
		}
	}
	dir, err := x.r.newDir(x.t.Turn.String())
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	p := place{dir: dir}
	if p.root, err = os.OpenRoot(dir); err != nil {
		return errors.Join(fmt.Errorf("open the folder: %w", err), x.r.removeDir(dir))
	}
	if p.folder, err = x.r.cfg.Folders.Restore(ctx, claim, dir); err != nil {
		x.r.removePlaces(p)
		return fmt.Errorf("restore the folder: %w", err)
	}
	x.place = p
	return nil
}

// saveFolder saves the changes of the folder to the database. A folder that cannot be saved is a
// tool.Refusal, and the database keeps the previous save.
func (x *Run) saveFolder(ctx context.Context) (workdir.Saved, error) {
	saved, err := x.folder.Save(ctx)
	x.dirty = err != nil
	if refused, ok := errors.AsType[*workdir.Refusal](err); ok {
		return saved, tool.Refusal(refused.Reason)
	}
	if err != nil {
		return saved, fmt.Errorf("save the folder: %w", err)
	}
	return saved, nil
}

// dropFolder drops the folder on this machine: the next call restores the last save.
func (x *Run) dropFolder() {
	x.r.removePlaces(x.place)
	x.place, x.dirty = place{}, false
}

// changeOwner makes the commands' user the owner of the files that this process has put into a
// folder.
func (x *Run) changeOwner(path string) error {
	if x.r.cfg.Sandbox == nil {
		return nil
	}
	return x.r.cfg.Sandbox.Give(path)
}
