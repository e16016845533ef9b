package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/yamux"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Result is the result of a command, and of the return of its folder.
type Result struct {
	sandbox.Result
	Skipped []string // names of the folder that were not returned, with the reasons
	Refused string   // why nothing of the folder was returned; "" if it was
}

// call is one command, on the server's side.
type call struct {
	cmd    sandbox.Command
	limits sandbox.Limits
	mux    *yamux.Session
	*frames
	guard *time.Timer // ends the connection when a deadline passes

	mu    sync.Mutex
	sent  bool  // everything was sent, or may have been: the command may have begun
	cause error // why the connection was ended here
}

// runOn runs a command on a connection, which it closes.
func runOn(ctx context.Context, conn io.ReadWriteCloser, workspace uuid.UUID, cmd sandbox.Command) (Result, error) {
	mux, err := yamux.Client(conn, muxConfig())
	if err != nil {
		conn.Close()
		return Result{}, err
	}
	defer mux.Close()
	control, err := mux.OpenStream()
	if err != nil {
		return Result{}, &sandbox.Failure{Reason: "the connection to the runner was lost: " + err.Error()}
	}
	c := &call{cmd: cmd, limits: cmd.Limits.OrDefault(), mux: mux, frames: &frames{Reader: control, w: control}}
	c.guard = time.AfterFunc(queueTime, func() { c.end(errors.New("the runner had no place, or did not receive the folder, in time")) })
	defer c.guard.Stop()
	defer context.AfterFunc(ctx, c.cancel)()

	serving := c.serveStreams(ctx)
	result, err := c.converse(ctx, workspace)
	mux.Close()
	serving()
	return result, c.explainEnd(ctx, err)
}

// end ends the connection. The first cause counts.
func (c *call) end(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	c.mux.Close()
}

// cancel ends a command. One that may have begun has killTime to confirm its end.
func (c *call) cancel() {
	c.mu.Lock()
	sent := c.sent
	c.mu.Unlock()
	if !sent {
		c.end(errCanceled)
		return
	}
	timer := time.AfterFunc(killTime, func() { c.end(errCanceled) })
	if err := c.writeFrame(killFrame, nil); err != nil {
		timer.Stop()
		c.end(errCanceled)
	}
}

var (
	errCanceled = errors.New("the command was canceled")
	errSilent   = errors.New("it gives no answer, and may be frozen")
	errEnded    = errors.New("it has ended the connection, or has ended itself")
)

// explainEnd converts the error of a conversation.
func (c *call) explainEnd(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*workdir.Refusal](err); ok {
		return err
	}
	if _, ok := errors.AsType[*sandbox.Failure](err); ok {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		err = c.cause
	}
	if errors.Is(err, errOutput) {
		return err
	}
	if !c.sent {
		return &sandbox.Failure{Reason: "the runner did not take the command: " + err.Error()}
	}
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// converse sends the command and receives what it does.
func (c *call) converse(ctx context.Context, workspace uuid.UUID) (Result, error) {
	if err := c.sendOrder(ctx, workspace); err != nil {
		return Result{}, err
	}
	o, err := c.receiveOutcome()
	switch {
	case err != nil:
		return Result{}, err
	case o.Canceled:
		return Result{}, errCanceled
	case o.Failure != "":
		return Result{}, &sandbox.Failure{Reason: "on the runner: " + o.Failure}
	}
	r := Result{Result: sandbox.Result{Exit: o.Exit, Killed: o.Killed, Took: o.Took}, Skipped: o.Skipped, Refused: o.Refused}
	if o.Refused != "" {
		return r, nil
	}
	c.guard.Reset(returnTime)
	if err := c.receiveChanges(ctx, workdir.NewMirror(c.cmd.Folder)); err != nil {
		return Result{}, err
	}
	return r, nil
}

// sendOrder sends the command and its folders.
func (c *call) sendOrder(ctx context.Context, workspace uuid.UUID) error {
	o := order{Workspace: workspace, Argv: c.cmd.Argv, Env: c.cmd.Env, CA: c.cmd.CA, Proxy: c.cmd.Serve != nil, Direct: c.cmd.Direct != nil,
		Attachments: c.cmd.Attachments != "", Limits: c.limits}
	folders := []string{c.cmd.Folder}
	if o.Attachments {
		folders = append(folders, c.cmd.Attachments)
	}
	var all []*workdir.Changes
	for _, dir := range folders {
		changes, err := workdir.NewMirror(dir).Changes(ctx)
		if err != nil {
			return err
		}
		all = append(all, changes)
	}
	if err := c.writeJSON(orderFrame, o); err != nil {
		return err
	}
	for i, changes := range all {
		if err := c.sendChanges(ctx, changes); err != nil {
			return err
		}
		if i == len(all)-1 { // from here on, an error does not tell what the runner has received
			c.markSent()
		}
		if err := c.writeFrame(endFrame, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) markSent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
}

// errOutput is the error of a reader of the output.
var errOutput = errors.New("write the output")

// receiveOutcome passes the output on until the command has ended.
func (c *call) receiveOutcome() (outcome, error) {
	left, begun := c.limits.Output, false
	for {
		k, content, err := c.readFrame(maxOutcome)
		if err != nil {
			return outcome{}, err
		}
		switch {
		case k == begunFrame && !begun:
			begun = true
			c.guard.Reset(c.limits.Time + finishTime)
		case k == outputFrame:
			if left -= int64(len(content)); left < 0 {
				return outcome{}, errors.New("the runner sends more output than it may")
			}
			if c.cmd.Output == nil {
				continue
			}
			if _, err := c.cmd.Output.Write(content); err != nil {
				return outcome{}, fmt.Errorf("%w: %w", errOutput, err)
			}
		case k == outcomeFrame:
			var o outcome
			d := json.NewDecoder(bytes.NewReader(content))
			return o, d.Decode(&o)
		default:
			return outcome{}, unexpected(k)
		}
	}
}

// serveStreams serves the connections of the command. wait waits for their end after the end of the
// connection to the runner.
func (c *call) serveStreams(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	ports := make(map[port]*listener)
	serve := func(p port, f func(context.Context, net.Listener) error) {
		l := newListener()
		ports[p] = l
		serving.Go(func() { c.serveUntilEnd(ctx, func() error { return f(ctx, l) }) })
	}
	if c.cmd.Serve != nil {
		serve(proxyPort, c.cmd.Serve)
	}
	if d := c.cmd.Direct; d != nil {
		serve(tlsPort, d.TLS)
		serve(plainPort, d.Plain)
	}
	serving.Go(func() {
		for {
			s, err := c.mux.AcceptStream()
			if errors.Is(err, yamux.ErrKeepAliveTimeout) {
				c.end(errSilent)
			}
			if err != nil {
				return
			}
			if c.mux.NumStreams() > maxStreams {
				c.end(errors.New("the runner opens more connections than it may"))
				return
			}
			serving.Go(func() { c.serveStream(ctx, s, ports) })
		}
	})
	return func() {
		cancel()
		for _, l := range ports {
			l.Close()
		}
		serving.Wait()
	}
}

// serveUntilEnd ends the command if its connections cannot be served, as a sandbox does.
func (c *call) serveUntilEnd(ctx context.Context, serve func() error) {
	if err := serve(); err != nil && ctx.Err() == nil && !c.mux.IsClosed() {
		c.end(fmt.Errorf("serve the command: %w", err))
	}
}

// serveStream serves a connection of the command.
func (c *call) serveStream(ctx context.Context, s *yamux.Stream, ports map[port]*listener) {
	stream := &conn{Stream: s}
	_ = s.SetReadDeadline(time.Now().Add(answerTime))
	p, target, err := readTarget(s)
	if err != nil {
		stream.Close()
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	stream.local = net.TCPAddrFromAddrPort(target)
	switch l := ports[p]; {
	case l != nil:
		l.pass(stream)
	case p == dnsPort && c.cmd.Direct != nil:
		c.serveUntilEnd(ctx, func() error { return c.cmd.Direct.DNS(ctx, packets{stream}) })
		stream.Close()
	default:
		stream.Close()
	}
}
