package turn

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
)

const (
	claimPatience = 5 * time.Second      // for a locked session
	lockedPause   = 5 * time.Millisecond // before a locked session is retried
)

var errSessionLocked = errors.New("the session stayed locked")

// claimTurn gives a queued turn to this process, if its workspace may have a place here. Otherwise
// the turn stays queued without a job until a place is free. release frees the place. claimTurn
// waits for the outcome even if ctx ends: a claimed turn needs a worker.
func (s *Service) claimTurn(ctx context.Context, job args) (claimed session.Claimed, release func(), err error) {
	release = func() {}
	request := session.ClaimRequest{Session: job.Session, Turn: job.Turn, Lease: s.cfg.Lease, Admit: func(workspace uuid.UUID) (ok bool) {
		release() // the place of a transaction that is repeated
		if release, ok = s.places.TryAcquire(workspace); !ok {
			release = func() {}
		}
		return ok
	}}
	ctx = context.WithoutCancel(ctx)
	for until := time.Now().Add(claimPatience); ; time.Sleep(lockedPause) {
		claimed, err = s.cfg.Sessions.ClaimTurn(ctx, request)
		if err != nil || !claimed.Locked {
			break
		}
		if time.Now().After(until) {
			err = errSessionLocked
			break
		}
	}
	if err != nil || !claimed.Ours {
		release()
	}
	if err == nil && !claimed.Ours { // it may wait for room in its workspace
		s.unplaced.Store(true)
	}
	return claimed, release, err
}

// runPlacing creates jobs for waiting turns whenever a turn has ended here, until ctx ends.
func (s *Service) runPlacing(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.freed:
		}
		if s.unplaced.Load() {
			s.runStep(ctx, "place waiting turns", s.placeTurns)
		}
	}
}

// placeTurns creates jobs for the turns that waited for other turns of their workspace to end. It
// leaves workspaces that may not have another place in this process to other replicas.
func (s *Service) placeTurns(ctx context.Context) error {
	if s.places.Free() == 0 {
		return nil
	}
	s.unplaced.Store(false) // first: a turn that is rejected meanwhile triggers another search
	n, err := s.cfg.Sessions.PlaceTurns(ctx, s.places.Full(), due)
	if n > 0 || err != nil {
		s.unplaced.Store(true)
	}
	if n > 0 {
		s.wakeQueue(queue)
	}
	return err
}
