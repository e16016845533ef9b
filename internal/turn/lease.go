package turn

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/session"
)

func (s *Service) addAttempt(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[a.lease.Turn] = a
}

// removeAttempt forgets an attempt, unless a newer one of the same turn has replaced it.
func (s *Service) removeAttempt(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[a.lease.Turn] == a {
		delete(s.running, a.lease.Turn)
	}
}

func (s *Service) findAttempt(turn uuid.UUID) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[turn]
}

func (s *Service) listAttempts() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*attempt, 0, len(s.running))
	for _, a := range s.running {
		list = append(list, a)
	}
	return list
}

// renewLeases renews the leases of this process's turns three times per lease, and sooner after a
// failure. It stops a turn that the process no longer holds, and every turn whose lease could not
// be renewed in time: authority that cannot be proven is lost.
func (s *Service) renewLeases(ctx context.Context) error {
	pause := s.cfg.Lease * 3 / 10
	renewals := outage.New(s.log, "renew leases")
	tick := time.NewTimer(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		tick.Reset(pause)
		running := s.storingAttempts(ctx, s.listAttempts())
		if len(running) == 0 {
			continue
		}
		crashpoint.Hit("lease.renew")
		err := s.renewTenures(ctx, running)
		counts{s.cfg.Metrics}.countRenewal(err)
		if renewals.Note(ctx, err, "turns", len(running)); err != nil {
			tick.Reset(pause / 3)
		}
		for _, a := range running {
			a.mu.Lock()
			late := !a.late && time.Since(a.renewed) > s.holdTime()
			a.late = a.late || late
			a.mu.Unlock()
			if late {
				s.log.WarnContext(ctx, "lease lost: not renewed in time", "session", a.lease.Session, "turn", a.lease.Turn)
				a.cancel(eventlog.ErrLeaseLost)
			}
		}
	}
}

// holdTime is how long a worker keeps a turn without a renewed lease: shorter than the lease.
func (s *Service) holdTime() time.Duration { return s.cfg.Lease * 8 / 10 }

// errStalled ends an attempt whose events are not stored.
var errStalled = errors.New("the turn's events are not stored")

// storingAttempts returns the attempts whose events are stored. The others are stopped and put back
// into the queue: a process that can renew leases and cannot append must not keep its turns.
func (s *Service) storingAttempts(ctx context.Context, running []*attempt) (storing []*attempt) {
	for _, a := range running {
		if waiting := a.waitingTime(); waiting > s.holdTime() {
			s.log.WarnContext(ctx, "lease given up: the turn's events are not stored", "session", a.lease.Session, "turn", a.lease.Turn,
				"waiting", waiting)
			a.cancel(errStalled)
			continue
		}
		storing = append(storing, a)
	}
	return storing
}

// waitingTime returns how long the attempt's events have waited for a commit.
func (a *attempt) waitingTime() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writer == nil {
		return 0
	}
	return a.writer.Waiting()
}

// setWriter sets the Writer of the attempt's events.
func (a *attempt) setWriter(w *eventlog.Writer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writer = w
}

func (s *Service) renewTenures(ctx context.Context, running []*attempt) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease*2/10)
	defer cancel()
	tenures := make([]session.Tenure, len(running))
	asked := time.Now()
	for i, a := range running {
		tenures[i] = session.Tenure{Lease: a.lease, Ran: asked.Sub(a.began)}
	}
	held, err := s.cfg.Sessions.RenewLeases(ctx, s.cfg.Lease, tenures)
	if err != nil {
		return err
	}
	for _, a := range running {
		if held[a.lease.Turn] != a.lease.Epoch {
			a.cancel(eventlog.ErrLeaseLost)
			continue
		}
		a.mu.Lock()
		a.renewed = asked
		a.mu.Unlock()
	}
	return nil
}

// watchCancel reads the turn after each notification from another replica about its session, which
// is usually a cancel. The heartbeat would find it too, but later.
func (s *Service) watchCancel(ctx context.Context, a *attempt, news <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		t, err := s.cfg.Sessions.TurnByID(ctx, a.lease.Turn)
		if err == nil && (t.State != session.Running || t.Epoch != a.lease.Epoch) {
			a.cancel(eventlog.ErrLeaseLost)
			return
		}
	}
}
