package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/session"
)

const (
	reapEvery = 250 * time.Millisecond
	// doubt is how long a node's lock must be missing: broken connections are restored sooner.
	doubt = 700 * time.Millisecond
	// stepTimeout limits one step of the reaper, so that a dead connection costs it one round.
	stepTimeout = 4 * time.Second
)

// runReaper searches for turns with a dead worker and puts them back into the queue. Every replica
// does so; the session's lock and its epoch decide which one is first. While no turn runs anywhere,
// only the pulse checks for work.
func (s *Service) runReaper(ctx context.Context) error {
	missing := make(map[int32]time.Time)
	seen := &tenures{turns: make(map[uuid.UUID]tenure), grace: s.cfg.Lease / 2}
	for work := range s.cfg.Pulse.Beats(ctx) {
		for running := work.Running; running && ctx.Err() == nil; {
			s.runStep(ctx, "take over the turns of dead workers", func(ctx context.Context) (err error) {
				running, err = s.reclaimTurns(ctx, missing, seen)
				return err
			})
			select {
			case <-ctx.Done():
			case <-time.After(reapEvery):
			}
		}
	}
	return nil
}

// runHousekeeping searches once a second for other work that replicas have left behind.
func (s *Service) runHousekeeping(ctx context.Context) error {
	var sealed time.Time
	for work, err := range s.cfg.Pulse.Beats(ctx) {
		if err == nil {
			s.reaped.Store(time.Now().UnixNano())
		}
		if work.Queued {
			s.runStep(ctx, "queue stranded turns again", s.sweepStranded)
			s.runStep(ctx, "place waiting turns", s.placeTurns)
		}
		if work.Deliveries {
			s.runStep(ctx, "queue stranded callbacks again", s.redeliverLost)
		}
		if work.Paused {
			s.runStep(ctx, "stop the turns of paused workspaces", s.stopPaused)
		}
		if work.Overdue {
			s.runStep(ctx, "end overdue waits", s.expireOverdue)
		}
		if work.Connects {
			s.runStep(ctx, "continue turns whose tool servers are connected", s.continueConnected)
		}
		if time.Since(sealed) > time.Minute { // addresses from replicas of an older version
			sealed = time.Now()
			s.runStep(ctx, "seal the addresses of callbacks", s.cfg.Callbacks.SealAddresses)
			s.runStep(ctx, "remove old use of budgets", s.budgets.Purge)
			if s.cfg.Toolset != nil {
				s.runStep(ctx, "remove old links", s.cfg.Toolset.PurgeLinks)
			}
		}
	}
	return nil
}

// runStep runs one step of the reaper. A failure does not stop the other steps.
func (s *Service) runStep(ctx context.Context, what string, do func(context.Context) error) {
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := do(bounded)
	if err == nil {
		s.reaped.Store(time.Now().UnixNano())
	}
	outages, known := s.steps.Load(what)
	if !known {
		outages, _ = s.steps.LoadOrStore(what, outage.New(s.log, "reaper: "+what))
	}
	outages.(*outage.Log).Note(ctx, err)
}

// reclaimTurns takes running turns from dead nodes, and from workers that have lost them: frozen,
// cut off from the database, or stuck. missing records since when a node is not seen. running is
// false if no turn runs anywhere.
func (s *Service) reclaimTurns(ctx context.Context, missing map[int32]time.Time, tenures *tenures) (running bool, err error) {
	turns, err := s.q.TurnsRunning(ctx)
	if err != nil {
		clear(missing)
		return true, err
	}
	if len(turns) == 0 {
		clear(missing)
		tenures.endRound()
		return false, nil
	}
	alive, err := s.q.NodesAlive(ctx)
	if err != nil {
		return true, err
	}
	s.cfg.EventLog.NodesSeen(alive)
	defer tenures.endRound()
	seen := make(map[int32]bool)
	var failed []error
	for _, t := range turns {
		seen[t.Node] = true
		since, doubted := missing[t.Node]
		switch {
		case slices.Contains(alive, t.Node):
			delete(missing, t.Node)
		case !doubted:
			missing[t.Node] = time.Now()
		}
		dead := !slices.Contains(alive, t.Node) && doubted && time.Since(since) > doubt
		if over := tenures.isOver(t); !over && !dead {
			continue
		}
		reason := "lease"
		if dead {
			reason = "dead"
		}
		s.cfg.Metrics.Takeovers.WithLabelValues(reason).Inc()
		s.log.InfoContext(ctx, "taking a turn over", "session", t.SessionID, "turn", t.ID, "node", t.Node, "dead", dead)
		failed = append(failed, s.takeOver(ctx, eventlog.Lease{Session: t.SessionID, Turn: t.ID, Epoch: t.Epoch}))
	}
	for node := range missing {
		if !seen[node] {
			delete(missing, node)
		}
	}
	return true, errors.Join(failed...)
}

// takeOver puts a turn that has lost its worker back into the queue. It leaves a locked session to
// the next round, so that it does not delay the others.
func (s *Service) takeOver(ctx context.Context, l eventlog.Lease) error {
	err := s.cfg.Sessions.TryUpdate(ctx, l.Session, func(tx *session.Tx) error {
		ok, err := tx.ReleaseTurn(ctx, l, event.AfterCrash)
		if err != nil || !ok {
			return err
		}
		crashpoint.Hit("reaper.before_requeue")
		return s.insertJob(ctx, tx, l.Turn)
	})
	return unlessBusy(err, "take over turn", l.Turn)
}

// unlessBusy adds the failed operation to an error. A locked session is not a failure: the next
// round retries.
func unlessBusy(err error, what string, id uuid.UUID) error {
	if err == nil || errors.Is(err, session.ErrBusy) {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, id, err)
}

// requeueTurn replaces the job of a queued turn, unless another replica did so first.
func (s *Service) requeueTurn(ctx context.Context, id, turn uuid.UUID, job *int64) error {
	err := s.cfg.Sessions.TryUpdate(ctx, id, func(tx *session.Tx) error {
		t, err := tx.Turn(ctx)
		if err != nil || t.ID != turn || t.State != session.Queued || !equalIDs(t.JobID, job) {
			return err
		}
		return s.insertJob(ctx, tx, turn)
	})
	return unlessBusy(err, "queue turn", turn)
}

func equalIDs(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
