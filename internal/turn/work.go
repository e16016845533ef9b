package turn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/toolenv"
)

// maxAttempts is how often a turn is started before it fails: a turn that kills every process must
// not kill them for ever.
const maxAttempts = 10

var (
	errDrain   = errors.New("the process is stopping")
	errTimeout = errors.New("the turn's time is over")
	errParked  = errors.New("the turn waits for input")
)

// attempt is a turn that runs in this process.
type attempt struct {
	lease  eventlog.Lease
	counts counts
	cancel context.CancelCauseFunc
	gone   chan struct{} // closed when its worker has stopped
	began  time.Time
	run    *toolenv.Run // of the worker alone; nil before the agent is assembled

	mu       sync.Mutex
	renewed  time.Time        // when the lease was last known to be valid, local clock
	writer   *eventlog.Writer // nil before the first event
	late     bool             // the lease was not renewed in time
	inStep   bool             // see drain.go
	draining bool
	toolAt   time.Time            // when the newest tool call began; zero: none runs
	spoke    bool                 // an earlier attempt has shown text
	first    time.Time            // when the first text came; zero: none came
	response *event.ModelResponse // a reply that continues at the provider; nil: none
	agent    *agent.Agent         // nil before it is assembled
}

// runTurn claims a turn and runs it. Afterwards its place is free.
func (s *Service) runTurn(ctx context.Context, job args) error {
	news, stop := s.cfg.EventLog.Watch(job.Session) // before the claim, or a cancel in between is missed
	defer stop()
	claimed, release, err := s.claimTurn(ctx, job)
	if err != nil || !claimed.Ours {
		return err
	}
	defer release()
	crashpoint.Hit("turn.after_claim")
	s.cfg.Metrics.TurnWait.Observe(s.since(claimed.Turn.StateAt, time.Now()).Seconds())
	ctx = s.contextOf(ctx, claimed.Turn)
	s.attendTurn(ctx, claimed, news)
	crashpoint.Hit("finish.after_commit_before_job_end")
	release()
	ctx = context.WithoutCancel(ctx)
	select {
	case s.freed <- struct{}{}:
	default:
	}
	if s.cfg.Permissions != nil {
		if err := s.cfg.Permissions.Flush(ctx); err != nil {
			s.log.WarnContext(ctx, "count the uses of the allow-list", "err", err)
		}
	}
	return nil
}

// attendTurn runs a turn while this process holds its lease and within its time limit, and settles
// the result.
func (s *Service) attendTurn(ctx context.Context, claimed session.Claimed, news <-chan struct{}) {
	var watching sync.WaitGroup
	defer watching.Wait()
	job := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &attempt{lease: claimed.Lease, counts: counts{s.cfg.Metrics}, cancel: cancel, gone: make(chan struct{}), began: time.Now(),
		renewed: time.Now()}
	defer close(a.gone)
	s.addAttempt(a)
	defer s.removeAttempt(a)
	defer func() { a.run.Close() }()
	watching.Go(func() { s.watchCancel(ctx, a, news) })

	t := claimed.Turn
	left := time.Duration((float64(t.MaxResponseSeconds) - t.ActiveSeconds) * float64(time.Second))
	limited, done := context.WithTimeoutCause(ctx, max(left, 0), errTimeout)
	defer done()
	e, w, err := s.runAgent(limited, claimed, a)
	if err == nil { // the answer is complete: it counts even after the time limit
		e.Rest, err = w.Rest(context.WithoutCancel(ctx))
	}
	if err != nil && limited.Err() != nil { // the time limit is the reason, whatever the attempt was doing
		err = errors.Join(context.Cause(limited), err)
	}
	if err != nil && job.Err() != nil { // the process stops, and River's cause is not one of ours
		err = errors.Join(errDrain, err)
	}
	s.settleTurn(context.WithoutCancel(ctx), t, a, e, err)
}

// runAgent takes the agent through the turn and writes the events that it yields. It returns the
// parts of the turn's end: the structured answer, if one was requested, and the Writer, which may
// hold the last events of the answer.
func (s *Service) runAgent(ctx context.Context, claimed session.Claimed, a *attempt) (e session.Ending, w *eventlog.Writer, err error) {
	t := claimed.Turn
	e.Trigger = session.Complete
	ag, conv, run, err := s.newAgent(ctx, claimed, a)
	if err != nil {
		return e, w, err
	}
	s.traceWait(ctx, conv.Log)
	a.run, a.spoke = run, conv.Shown || conv.Tail != ""
	a.setAgent(ag, conv.Log)
	defer run.Release() // before the turn's end, since the next turn may use the folder
	defer func() {
		if p := recover(); p != nil {
			err = s.failPanicked(ctx, t, run.Redact, p)
		}
	}()
	w = s.cfg.EventLog.Writer(a.lease)
	w.OnFailure(a.cancel)
	a.setWriter(w)
	crashpoint.Hit("turn.before_first_event")
	for bodies, err := range ag.Run(ctx, conv) {
		if err != nil {
			return e, w, errors.Join(err, w.Flush(context.WithoutCancel(ctx)))
		}
		write := w.Append
		switch b := bodies[0].(type) {
		case event.Structured:
			e.Structured = b.Result
			continue
		case event.Question:
			if err := w.Flush(ctx); err != nil {
				return e, w, err
			}
			return e, w, s.parkTurn(ctx, t, a, b)
		case event.Compacted:
			if err := s.countReply(ctx, claimed, b.Usage); err != nil {
				return e, w, err
			}
		case event.Reply:
			if err := s.countReply(ctx, claimed, b.Usage); err != nil {
				return e, w, err
			}
			if len(b.Calls) == 0 { // usually the last reply
				write = w.Queue
			}
		}
		last := bodies[len(bodies)-1].Kind() // others of the same call come before it
		if last == event.KindToolResult {
			crashpoint.Hit("tool.after_call_before_result")
		}
		if err := write(ctx, bodies...); err != nil {
			return e, w, err
		}
		if last == event.KindToolUse {
			crashpoint.Hit("tool.after_use_before_call")
		}
		a.noteEvents(bodies)
		if ctx.Err() != nil {
			return e, w, errors.Join(context.Cause(ctx), w.Flush(context.WithoutCancel(ctx)))
		}
	}
	return e, w, nil
}

// settleTurn ends, hands over or leaves a turn, depending on the reason why its run stopped.
func (s *Service) settleTurn(ctx context.Context, t session.Turn, a *attempt, e session.Ending, err error) {
	log := s.log.With("session", t.SessionID, "turn", t.ID)
	failure, failed := errors.AsType[*agent.Failure](err)
	released := false
	switch {
	case errors.Is(err, eventlog.ErrLeaseLost):
		s.haltTurn(ctx, t, a)
		return
	case errors.Is(err, errParked):
		return
	case err == nil:
		err = s.endAttempt(ctx, t, a, e)
	case errors.Is(err, errDrain), errors.Is(err, errStalled), errors.Is(err, context.Canceled):
		log.InfoContext(ctx, "handing the turn over")
		why, reason := event.AfterDrain, "drain"
		if errors.Is(err, errStalled) {
			why, reason = event.AfterOutage, "stalled"
		}
		s.cfg.Metrics.Handovers.WithLabelValues(reason).Inc()
		err, released = s.releaseTurn(ctx, a.lease, why), true
	case errors.Is(err, errTimeout):
		err = s.failTurn(ctx, t, a, event.TimedOut.Failure(fmt.Sprintf("The answer took longer than %d seconds.", t.MaxResponseSeconds)))
	case failed:
		f := failure.Code.Failure(failure.Message)
		f.Recoverable = f.Recoverable && !failure.Final
		err = s.failTurn(ctx, t, a, f)
	case pgerr.IsTransient(err): // the log is the truth: the turn continues from it, here or elsewhere
		log.WarnContext(ctx, "the turn is interrupted", "err", err)
		s.cfg.Metrics.Handovers.WithLabelValues("database").Inc()
		err, released = s.releaseTurn(ctx, a.lease, event.AfterOutage), true
	default:
		log.ErrorContext(ctx, "the turn failed", "err", err)
		err = s.failTurn(ctx, t, a, event.InternalError.Failure("Internal error."))
	}
	switch {
	case errors.Is(err, eventlog.ErrLeaseLost):
		s.haltTurn(ctx, t, a)
	case err != nil:
		log.WarnContext(ctx, "the turn could not be closed; its lease will run out and another worker take it", "err", err)
	case !released:
		a.cancelResponse(ctx)
	}
}

// haltTurn settles a turn whose lease was lost: it was canceled, or another worker has it.
func (s *Service) haltTurn(ctx context.Context, t session.Turn, a *attempt) {
	if s.confirmHalt(ctx, t) {
		a.cancelResponse(ctx)
	}
}

func (s *Service) failTurn(ctx context.Context, t session.Turn, a *attempt, f event.Error) error {
	return s.endAttempt(ctx, t, a, session.Ending{Trigger: session.Fail, Failure: &f})
}

// endAttempt closes the turn under the attempt's lease.
func (s *Service) endAttempt(ctx context.Context, t session.Turn, a *attempt, e session.Ending) error {
	e.Epoch, e.Halted = a.lease.Epoch, true
	return s.retryClosing(ctx, func(ctx context.Context) error {
		if ended, err := s.cfg.Sessions.CompleteTurn(ctx, t, e); ended || err != nil {
			return err
		}
		return s.cfg.Sessions.Update(ctx, a.lease.Session, func(tx *session.Tx) error {
			ok, err := s.endTurn(ctx, tx, t, e)
			if err == nil && !ok {
				err = eventlog.ErrLeaseLost
			}
			return err
		})
	})
}

// releaseTurn puts a turn back into the queue, for any worker.
func (s *Service) releaseTurn(ctx context.Context, l eventlog.Lease, why event.AttemptReason) error {
	return s.retryClosing(ctx, func(ctx context.Context) error {
		return s.cfg.Sessions.Update(ctx, l.Session, func(tx *session.Tx) error {
			ok, err := tx.ReleaseTurn(ctx, l, why)
			if err != nil || !ok {
				return err
			}
			return s.insertJob(ctx, tx, l.Turn)
		})
	})
}

// retryClosing retries a last transaction until it succeeds or the lease has expired. It may be
// repeated: the fence makes the second time a no-op.
func (s *Service) retryClosing(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease)
	defer cancel()
	for delay := 50 * time.Millisecond; ; delay *= 2 {
		err := try(ctx)
		if err == nil || !pgerr.IsTransient(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(delay):
		}
	}
}

// confirmHalt confirms to the canceling request that the worker has stopped. It reports whether the
// turn was canceled.
func (s *Service) confirmHalt(ctx context.Context, t session.Turn) bool {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease)
	defer cancel()
	canceled, err := s.cfg.Sessions.ConfirmHalt(ctx, t.ID)
	switch {
	case err != nil:
		s.cfg.Metrics.LeasesLost.Inc()
		s.log.WarnContext(ctx, "lease lost: cannot confirm that the worker has stopped", "session", t.SessionID, "turn", t.ID, "err", err)
	case !canceled:
		s.cfg.Metrics.LeasesLost.Inc()
		s.log.WarnContext(ctx, "lease lost: another worker has the turn", "session", t.SessionID, "turn", t.ID)
	}
	return err == nil && canceled
}
