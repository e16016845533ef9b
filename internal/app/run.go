package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/turn"
)

// The stop takes at most PARLEY_DRAIN and 10 s: a supervisor kills the process after that.
const (
	handOver  = turn.HardStop + time.Second // after PARLEY_DRAIN
	closeTime = 3 * time.Second             // for running requests
	storeTime = 2 * time.Second
)

// runParts starts every part and waits for the end of ctx, or of a part that fails.
func (s *service) runParts(ctx context.Context) error {
	failed := make(chan error, 13)
	base := context.WithoutCancel(ctx)
	events := startTask(base, failed, "the log of events", s.events.Run)
	sessions := startTask(base, failed, "the housekeeping of sessions", s.sessions.Run)
	keys := startTask(base, failed, "the watch on keys", s.keys.Run)
	accounts := startTask(base, failed, "the watch on web sessions", s.accounts.Run)
	files := startTask(base, failed, "the files", s.files.Run)
	folders := startTask(base, failed, "the folders of sessions", s.folders.Run)
	runner := startTask(base, failed, "the record of requests", s.runner.Run)
	knowledge := startTask(base, failed, "the index of documents", func(ctx context.Context) error { return s.wiki.Run(ctx, s.Log) })
	links := startTask(base, failed, "the chain of the log", s.chain.Run)
	turns := startTask(base, failed, "the turns", s.turns.Run)
	if s.observer != nil {
		observer := startTask(base, failed, "the server of metrics", s.serveMetrics)
		defer func() { _ = observer.stopTask(storeTime) }()
	}
	watch := startTask(base, failed, "the watch on the database", s.watchDatabase)
	if s.private != nil {
		private := startTask(base, failed, "the private PostgreSQL", s.watchPrivate)
		defer private.stopTask(storeTime)
	}
	requests, endStreams := context.WithCancel(base)
	defer endStreams()
	var web, limits *task
	if s.server != nil {
		limits = startTask(base, failed, "the counts of streams", s.limits.Run)
		s.server.BaseContext = func(net.Listener) context.Context { return requests }
		web = startTask(base, failed, "the HTTP server", func(context.Context) error {
			if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	s.awaitListening(ctx)
	s.banner.printReady(s)
	s.logReady(ctx)
	if s.Ready != nil {
		s.Ready(s.url)
	}

	var err error
	select {
	case <-ctx.Done():
		s.Log.InfoContext(ctx, "stopping", "drain", s.Config.Drain)
	case err = <-failed:
		s.Log.ErrorContext(ctx, "a part failed, stopping", "err", err)
	}
	// The order matters: while turns finish their steps, their streams still show it, and accepted
	// events are still written. Clients that do not ask /readyz learn from their responses that they
	// must connect again.
	s.stopping.Store(true)
	if web != nil {
		s.server.SetKeepAlivesEnabled(false)
	}
	drained := s.handOverWhenHurried()
	err = errors.Join(err, turns.stopTask(s.Config.Drain+handOver))
	drained()
	crashpoint.Hit("shutdown.mid")
	if web != nil {
		err = errors.Join(err, limits.stopTask(storeTime)) // frees its streams' places for the replicas to which their readers reconnect
		endStreams()
		err = errors.Join(err, s.hangUp(base), web.stopTask(time.Second))
	}
	err = errors.Join(err, keys.stopTask(storeTime), accounts.stopTask(storeTime), files.stopTask(storeTime), folders.stopTask(storeTime),
		runner.stopTask(storeTime), knowledge.stopTask(storeTime),
		links.stopTask(storeTime), sessions.stopTask(storeTime), events.stopTask(storeTime), watch.stopTask(storeTime))
	if s.box != nil {
		err = errors.Join(err, s.box.Close())
	}
	s.Log.InfoContext(base, "stopped")
	return err
}

// handOverWhenHurried ends the drain when its supervisor is in a hurry. The caller calls drained at
// the end of the drain.
func (s *service) handOverWhenHurried() (drained func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.Hurry:
			s.turns.HandOverNow()
		case <-end:
		}
	}()
	return func() { close(end); <-ended }
}

// awaitListening waits briefly for the listening connection, so that the first call of /readyz
// after the start finds it. The caller of /readyz has to wait longer if necessary.
func (s *service) awaitListening(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.events.IsListening() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// hangUp lets running requests end, then closes the remaining ones.
func (s *service) hangUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.Log.WarnContext(ctx, "requests were cut off")
		err = s.server.Close()
	}
	if err != nil {
		return fmt.Errorf("close the HTTP server: %w", err)
	}
	return nil
}

// task is a running part.
type task struct {
	name     string
	cancel   context.CancelFunc
	stopping atomic.Bool
	done     chan error
}

// startTask runs a part. A part that ends by itself is a failure of the service.
func startTask(ctx context.Context, failed chan<- error, name string, run func(context.Context) error) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{name: name, cancel: cancel, done: make(chan error, 1)}
	go func() {
		err := run(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		if !t.stopping.Load() {
			failed <- cmpErr(err, fmt.Errorf("%s ended by itself", name))
			err = nil // reported already
		}
		t.done <- err
	}()
	return t
}

// stopTask ends a part and waits for it.
func (t *task) stopTask(patience time.Duration) error {
	t.stopping.Store(true)
	t.cancel()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-t.done:
		return err
	case <-timer.C:
		return fmt.Errorf("%s did not stop within %s", t.name, patience)
	}
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
