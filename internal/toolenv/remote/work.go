package remote

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/yamux"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

var (
	errStopped    = errors.New("the runner is stopping")
	errServerGone = errors.New("the connection to the server was lost")
)

// work is one command, on the runner's side.
type work struct {
	r      *Runner
	mux    *yamux.Session
	cancel context.CancelCauseFunc
	*frames
	guard    *time.Timer // ends the connection when a deadline passes
	order    order
	answered bool           // an outcome was sent
	watching sync.WaitGroup // reads the first stream while the command runs
}

// runCommand runs the command of a connection, and closes the connection.
func (r *Runner) runCommand(c net.Conn, from string) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	mux, err := yamux.Server(c, muxConfig())
	if err != nil {
		c.Close()
		return
	}
	defer mux.Close()
	w := &work{r: r, mux: mux, cancel: cancel}
	w.guard = time.AfterFunc(answerTime, func() { mux.Close() })
	defer w.guard.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-mux.CloseChan()
		cancel(errServerGone)
	}()
	res, err := w.perform(ctx)
	if w.answered { // the server closes the connection when it has everything
		w.guard.Reset(answerTime)
		<-ended
	}
	w.logEnd(ctx, from, res, err)
	mux.Close()
	<-ended
	w.watching.Wait()
}

// logEnd logs how a command ended, or the test command of a server's check.
func (w *work) logEnd(ctx context.Context, from string, res sandbox.Result, err error) {
	if from == "" || from == "@" { // the peer of a socket has no address
		from = "socket"
	}
	what, log := "command", w.r.log.With("server", from)
	if len(w.order.Argv) > 0 && w.order.Workspace == uuid.Nil {
		what = "check"
	} else {
		log = log.With("workspace", w.order.Workspace)
	}
	if err != nil {
		log.WarnContext(ctx, what+" failed", "err", err)
		return
	}
	log.InfoContext(ctx, what+" ended", "exit", res.Exit, "killed", res.Killed, "duration", res.Took.Round(time.Millisecond))
}

// perform receives a command, runs it and returns what it did.
func (w *work) perform(ctx context.Context) (sandbox.Result, error) {
	control, err := w.mux.AcceptStream()
	if err != nil {
		return sandbox.Result{}, err
	}
	defer control.Close()
	w.frames = &frames{Reader: control, w: control}
	if err := w.readJSON(orderFrame, maxOrder, &w.order); err != nil {
		return sandbox.Result{}, err
	}
	w.guard.Reset(queueTime)
	release, err := w.r.places.Acquire(ctx, w.order.Workspace)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer release()
	folder, err := w.receiveFolder(ctx, "folder")
	defer w.removeFolder(folder)
	var sent received
	if err == nil && w.order.Attachments {
		sent, err = w.receiveFolder(ctx, "attachments")
		defer w.removeFolder(sent)
	}
	if err != nil {
		return sandbox.Result{}, errors.Join(err, w.answer(outcome{Failure: err.Error()}))
	}
	return w.runOrder(ctx, folder, sent)
}

// answer ends the conversation, up to the changes of the folder.
func (w *work) answer(o outcome) error {
	w.answered = true
	return w.writeJSON(outcomeFrame, o)
}

// received is a folder from the server; the zero value is none.
type received struct {
	*workdir.Mirror
	dir string
}

// receiveFolder makes a folder for commands with what the server sends.
func (w *work) receiveFolder(ctx context.Context, name string) (f received, err error) {
	if f.dir, err = w.r.cfg.Sandbox.NewFolder(name); err != nil {
		return f, err
	}
	f.Mirror = workdir.NewMirror(f.dir)
	if err := w.receiveChanges(ctx, f.Mirror); err != nil {
		return f, err
	}
	if err := w.r.cfg.Sandbox.Give(f.dir); err != nil {
		return f, err
	}
	return f, f.Remember(ctx)
}

func (w *work) removeFolder(f received) {
	if f.dir == "" {
		return
	}
	if err := w.r.cfg.Sandbox.Remove(f.dir); err != nil {
		w.r.log.Warn("remove a folder; it is swept at the next start", "err", err)
	}
}

// runOrder runs the command, and sends what it does and what it leaves.
func (w *work) runOrder(ctx context.Context, folder, sent received) (sandbox.Result, error) {
	o := w.order
	if err := w.writeFrame(begunFrame, nil); err != nil {
		return sandbox.Result{}, err
	}
	w.guard.Reset(o.Limits.OrDefault().Time + finishTime)
	w.watching.Go(func() { // until the connection ends
		if _, _, err := w.readFrame(0); err == nil {
			w.cancel(errCanceled)
		}
	})
	c := sandbox.Command{Argv: o.Argv, Env: o.Env, CA: o.CA, Folder: folder.dir, Attachments: sent.dir,
		Output: pieces{w.frames, outputFrame}, Limits: o.Limits}
	(&forwarder{w.mux, make(chan struct{}, maxForwarded)}).serveCommand(o, &c)
	res, err := w.r.cfg.Sandbox.Run(ctx, c)
	if ctx.Err() != nil {
		return res, errors.Join(context.Cause(ctx), w.answer(outcome{Canceled: true}))
	}
	if failure, ok := errors.AsType[*sandbox.Failure](err); ok {
		return res, errors.Join(err, w.answer(outcome{Failure: failure.Reason}))
	}
	if err != nil {
		return res, err // the server learns from the end of the connection that the outcome is unknown
	}
	return res, w.returnFolder(ctx, folder, outcome{Exit: res.Exit, Killed: res.Killed, Took: res.Took})
}

// returnFolder sends the outcome, and the changes of the folder unless they exceed a limit.
func (w *work) returnFolder(ctx context.Context, folder received, o outcome) error {
	changes, err := folder.Changes(ctx)
	if refusal, ok := errors.AsType[*workdir.Refusal](err); ok {
		o.Refused = refusal.Reason
		return ignoreShutdown(w.answer(o))
	}
	if err != nil {
		return err
	}
	o.Skipped = changes.Skipped
	if err := w.answer(o); err != nil {
		return err
	}
	w.guard.Reset(returnTime)
	if err := w.sendChanges(ctx, changes); err != nil {
		return err
	}
	return ignoreShutdown(w.writeFrame(endFrame, nil))
}

// ignoreShutdown returns the error of the last write. The server closes the connection as soon as it
// has the last frame, often before the write returns, and yamux then reports a shutdown.
func ignoreShutdown(err error) error {
	if errors.Is(err, yamux.ErrSessionShutdown) {
		return nil
	}
	return err
}
