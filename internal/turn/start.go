package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
)

// Start stores a message and queues its turn. When it returns without an error the message is
// durable and will be answered. For a repeated request, identified by its Idempotency-Key or by the
// last event it saw, it returns the existing turn.
//
// A message waits for admission as long as its caller does, AdmissionWait at most. From then on
// neither the end of ctx nor its deadline interrupts Start, which has its own limit: in the middle
// of a commit the outcome would be unknown.
func (s *Service) Start(ctx context.Context, req Request) (Started, error) {
	leave, err := s.admission.acquirePlace(ctx, req)
	if err != nil {
		return Started{}, err
	}
	defer leave()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StartTimeout)
	defer cancel()
	started, err := s.startTurn(bounded, req)
	if err == nil {
		crashpoint.Hit("accept.after_commit_before_reply")
		if !started.Replayed {
			s.cfg.Metrics.TurnsStarted.Inc()
		}
	}
	return started, err
}

func (s *Service) startTurn(ctx context.Context, req Request) (Started, error) {
	if req.LastEvent > 0 {
		return s.findResent(ctx, req)
	}
	if req.IdempotencyKey != "" { // before any check whose result may have changed since
		if started, ok, err := s.Repeated(ctx, req); ok || err != nil {
			return started, err
		}
	}
	if err := s.checkPause(req.Workspace); err != nil {
		return Started{}, err
	}
	started := Started{Turn: uuid.Must(uuid.NewV7())}
	n, err := s.newTurn(ctx, req, started.Turn)
	if err != nil {
		return started, err
	}
	if req.isPlain() {
		return s.startPlain(ctx, req, n)
	}
	ref := session.Ref{Workspace: req.Workspace.ID, ID: req.Session, CallerID: req.CallerID}
	var interrupted []session.Turn
	err = s.cfg.Sessions.Open(ctx, ref, func(tx *session.Tx) (err error) {
		if req.IdempotencyKey != "" {
			if err := tx.ReserveKey(ctx, req.onceOf(), started.Turn); err != nil {
				return err
			}
		}
		if req.Multitask == Interrupt {
			if interrupted, err = s.endAll(ctx, tx, "Another message interrupted this turn."); err != nil {
				return err
			}
		}
		if err := s.checkBudgets(ctx, tx, req, n); err != nil {
			return err
		}
		return s.beginTurn(ctx, tx, req, n, &started)
	})
	if errors.Is(err, session.ErrRepeated) {
		started, ok, err := s.Repeated(ctx, req)
		if err == nil && !ok {
			err = errors.New("the turn of an idempotency key is gone")
		}
		return started, err
	}
	if errors.Is(err, session.ErrUnknownOutcome) {
		err = s.confirmStart(context.WithoutCancel(ctx), &started, err)
	}
	if err != nil {
		return started, err
	}
	for _, t := range interrupted {
		s.haltAttempt(t.ID)
	}
	started.Session, started.Callback = started.From.Session, n.Callback
	return started, nil
}

// startPlain starts the turn of a plain message. Turns that start at the same time share a
// transaction.
func (s *Service) startPlain(ctx context.Context, req Request, n session.NewTurn) (started Started, err error) {
	started = Started{Session: uuid.Must(uuid.NewV7()), Turn: n.ID}
	if n.Job, err = jobOf(n.ID, started.Session); err != nil {
		return started, err
	}
	started.From, err = s.cfg.Sessions.Begin(ctx, req.Workspace.ID, started.Session, n)
	switch {
	case errors.Is(err, session.ErrUnknownOutcome):
		err = s.confirmStart(context.WithoutCancel(ctx), &started, err)
	case err == nil:
		s.wakeQueue(queue)
	}
	return started, err
}

// confirmEvery is the pause between two reads.
const confirmEvery = 50 * time.Millisecond

// confirmStart finds out whether a commit with a lost response stored a turn. PostgreSQL may still
// be running it. If the turn exists, the message was accepted and confirm returns nil; otherwise it
// returns cause.
func (s *Service) confirmStart(ctx context.Context, started *Started, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ConfirmTimeout)
	defer cancel()
	for {
		t, err := s.cfg.Sessions.TurnByID(ctx, started.Turn)
		if err == nil {
			if s.cfg.Sessions.AwaitReplication(ctx) != nil {
				return cause
			}
			started.From = eventlog.From{Session: t.SessionID, Seq: t.StartSeq - 1, Since: t.CreatedAt}
			s.wakeQueue(queue)
			return nil
		}
		select {
		case <-ctx.Done():
			return cause
		case <-time.After(confirmEvery):
		}
	}
}

// beginTurn writes the turn and everything that is created with it.
func (s *Service) beginTurn(ctx context.Context, tx *session.Tx, req Request, n session.NewTurn, started *Started) error {
	if len(req.Attachments) > 0 {
		var err error
		if started.Rejected, err = s.cfg.Files.Attach(ctx, tx.Tx, req.Workspace.ID, n.ID, req.Attachments); err != nil {
			return err
		}
		if len(started.Rejected) > 0 {
			if n.Rejected, err = json.Marshal(started.Rejected); err != nil {
				return fmt.Errorf("encode rejected attachments: %w", err)
			}
		}
	}
	var err error
	if n.Job, err = jobOf(n.ID, tx.SessionID()); err != nil {
		return err
	}
	if n.Supplied != nil && len(n.Supplied.Messages) > 0 && !tx.IsNew() {
		started.Resent = true
		if n.Supplied = nil; req.Supplied.Instructions != "" { // an event without content counts as erased
			n.Supplied = &event.Supplied{Instructions: req.Supplied.Instructions}
		}
	}
	from, queued, err := tx.Begin(ctx, n)
	if err != nil {
		return err
	}
	started.From = from
	if req.Callback != nil {
		err := s.cfg.Callbacks.Register(ctx, tx.Tx, req.Callback.newRow(n.Callback, req.Workspace.ID, from.Session, n.ID))
		if err != nil {
			return err
		}
	}
	if queued {
		s.wakeAfter(tx, queue)
	}
	crashpoint.Hit("accept.before_commit")
	return nil
}

// Repeated finds the turn that the same request started before, by its Idempotency-Key; ok is false
// if there is none. Another request under that key is IDEMPOTENCY_KEY_REUSED.
func (s *Service) Repeated(ctx context.Context, req Request) (started Started, ok bool, err error) {
	e, ok, err := s.cfg.Sessions.FindRepeated(ctx, req.onceOf())
	if err == nil && ok {
		err = s.cfg.Sessions.AwaitReplication(ctx)
	}
	return startedOf(e), ok, err
}

// findResent finds the turn of a message that a client sends again after a drop. It
// never starts a second one.
func (s *Service) findResent(ctx context.Context, req Request) (Started, error) {
	e, ok, err := s.cfg.Sessions.FindResent(ctx, req.Workspace.ID, req.Key, req.Hash, req.LastEvent)
	if err == nil && !ok {
		err = &fault.Error{Code: fault.InvalidCursor, Param: "Last-Event-ID",
			Message: "Last-Event-ID names no event of an earlier attempt at this very message. Leave it out to send the message anew."}
	}
	if err == nil {
		err = s.cfg.Sessions.AwaitReplication(ctx)
	}
	return startedOf(e), err
}

func startedOf(e session.Earlier) Started {
	return Started{Session: e.From.Session, Turn: e.Turn, From: e.From, Callback: e.Callback, Replayed: true}
}

// The largest limits that a version of an agent can have.
const (
	longestResponse = 3600
	mostTurns       = 200
)

// orLargest replaces limits that a message does not set. The version of the agent lowers them when
// the turn is stored.
func (l Limits) orLargest() Limits {
	l.MaxResponseSeconds = positiveOr(l.MaxResponseSeconds, longestResponse)
	l.MaxTurns = positiveOr(l.MaxTurns, mostTurns)
	return l
}

func positiveOr(n, other int) int {
	if n <= 0 {
		return other
	}
	return n
}
