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

// Run is one attempt at a turn's run. Its calls come one after the other.
type Run struct {
	r    *Runner
	t    Turn
	log  *slog.Logger
	call string // the tool call that is under way

	place              // the session's folder; without one before a call needs it
	dirty       bool   // the folder is not as it was last saved
	attachments string // what users sent; "" before a command needs it
	net         *network
	refused     refusals
}

// Unavailable returns the reason why no command can run, for the model; "" if commands can run.
func (x *Run) Unavailable() string {
	if x.r.cfg.Sandbox == nil {
		return "sandbox_unavailable: this server cannot run commands, because it has no sandbox for them. Do without, and say so."
	}
	return ""
}

// Close ends the attempt: what it had open is closed, and what it needed goes. A folder
// that is as it was last saved is kept for a while.
func (x *Run) Close() {
	if x == nil {
		return
	}
	if x.net != nil {
		x.net.run.Close()
		x.net = nil
		x.flushRefusals()
	}
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

// saveFolder brings what has changed in the folder to the database. Where the folder cannot
// be kept as it is, that is a tool.Refusal, and the database has what it had.
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

// changeOwner makes what this process has put into a folder the property of the user that
// commands run as.
func (x *Run) changeOwner(path string) error {
	if x.r.cfg.Sandbox == nil {
		return nil
	}
	return x.r.cfg.Sandbox.Give(path)
}
