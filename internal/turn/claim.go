package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
)

const (
	claimsAtOnce  = 64                   // claims of one transaction at most
	claimTimeout  = 5 * time.Second      // for one transaction of claims
	claimPatience = 5 * time.Second      // for a session that is locked
	lockedPause   = 5 * time.Millisecond // before a locked session is tried again
)

var errSessionLocked = errors.New("the session stayed locked")

// claims gathers the claims of this process: those that arrive while a transaction runs share the
// next one. Claims of one workspace pass one transaction at a time in the whole installation, so
// their number is what bounds how many turns start in a second.
type claims struct {
	wake chan struct{}

	mu    sync.Mutex
	queue []*claim
}

// claim is one turn to be claimed.
type claim struct {
	job     args
	until   time.Time
	done    chan struct{} // closed when out and err are set
	out     session.Claimed
	err     error
	release func() // gives the place back; never nil
}

// claim gives a queued turn to this process, if its workspace may have a place here. Otherwise the
// turn stays queued without a job, until there is one. release gives the place back. It waits for
// the outcome even if ctx ends: a claimed turn needs a worker.
func (s *Service) claim(job args) (claimed session.Claimed, release func(), err error) {
	c := &claim{job: job, until: time.Now().Add(claimPatience), done: make(chan struct{}), release: func() {}}
	s.claims.add(c)
	<-c.done
	if c.err != nil || !c.out.Ours {
		c.release()
	}
	return c.out, c.release, c.err
}

func (q *claims) add(c ...*claim) {
	q.mu.Lock()
	q.queue = append(q.queue, c...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the next claims from the queue. Of one session there is one: a turn that is queued
// twice must not be claimed twice in one transaction.
func (q *claims) take() (next []*claim) {
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := make(map[uuid.UUID]bool)
	var rest []*claim
	for _, c := range q.queue {
		if len(next) == claimsAtOnce || seen[c.job.Session] {
			rest = append(rest, c)
			continue
		}
		seen[c.job.Session] = true
		next = append(next, c)
	}
	q.queue = rest
	return next
}

// run makes the claims until ctx ends.
func (s *Service) runClaims(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.claims.wake:
		}
		for next := s.claims.take(); len(next) > 0; next = s.claims.take() {
			s.claimAll(ctx, next)
		}
	}
}

// claimAll makes some claims in one transaction. Those whose sessions are locked are tried again.
func (s *Service) claimAll(ctx context.Context, next []*claim) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	asked := make([]session.ClaimRequest, len(next))
	for i, c := range next {
		asked[i] = session.ClaimRequest{Session: c.job.Session, Turn: c.job.Turn, Admit: func(workspace uuid.UUID) bool { return s.admit(c, workspace) }}
	}
	outcomes, err := s.cfg.Sessions.ClaimTurns(ctx, asked, s.cfg.Lease)
	var again []*claim
	for i, c := range next {
		switch {
		case err != nil:
			c.err = err
		case !outcomes[i].Locked:
			c.out = outcomes[i]
			if !c.out.Ours { // it may wait for room in its workspace
				s.unplaced.Store(true)
			}
		case time.Now().After(c.until):
			c.err = errSessionLocked
		default:
			again = append(again, c)
			continue
		}
		close(c.done)
	}
	if len(again) > 0 {
		time.AfterFunc(lockedPause, func() { s.claims.add(again...) })
	}
}

// admit takes a place for a claim.
func (s *Service) admit(c *claim, workspace uuid.UUID) bool {
	c.release() // of a transaction that is repeated
	release, ok := s.places.TryAcquire(workspace)
	if !ok {
		c.release = func() {}
		return false
	}
	c.release = release
	return true
}

// runPlacing makes jobs for waiting turns whenever a turn has ended here, until ctx ends.
func (s *Service) runPlacing(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.freed:
		}
		if s.unplaced.Load() {
			s.step(ctx, "place waiting turns", s.place)
		}
	}
}

// place makes jobs for the turns that waited for others of their workspace to end.
// Workspaces that may have no further place in this process are left to others.
func (s *Service) place(ctx context.Context) error {
	if s.places.Free() == 0 {
		return nil
	}
	s.unplaced.Store(false) // first: a turn that is turned away meanwhile is looked for again
	n, err := s.cfg.Sessions.PlaceTurns(ctx, s.places.Full(), due)
	if n > 0 || err != nil {
		s.unplaced.Store(true)
	}
	if n > 0 {
		s.wake(queue)
	}
	return err
}
