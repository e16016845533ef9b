package turn

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
)

func (s *Service) add(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[a.lease.Turn] = a
}

// remove forgets an attempt, unless a newer one of the same turn has taken its place.
func (s *Service) remove(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[a.lease.Turn] == a {
		delete(s.running, a.lease.Turn)
	}
}

func (s *Service) attempt(turn uuid.UUID) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[turn]
}

func (s *Service) attempts() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*attempt, 0, len(s.running))
	for _, a := range s.running {
		list = append(list, a)
	}
	return list
}

// heartbeat renews the leases of this process's turns, three times in a lease. A
// turn that it does not hold any more is stopped, and so is every turn whose lease
// could not be renewed in time: authority that cannot be proven is lost.
func (s *Service) heartbeat(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Lease * 3 / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		running := s.attempts()
		if len(running) == 0 {
			continue
		}
		if err := s.renew(ctx, running); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "renew leases", "turns", len(running), "err", err)
		}
		for _, a := range running {
			a.mu.Lock()
			late := time.Since(a.renewed) > s.cfg.Lease*8/10
			a.mu.Unlock()
			if late {
				s.log.WarnContext(ctx, "lease lost: not renewed in time", "session", a.lease.Session, "turn", a.lease.Turn)
				a.cancel(session.ErrLeaseLost)
			}
		}
	}
}

func (s *Service) renew(ctx context.Context, running []*attempt) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease*2/10)
	defer cancel()
	ids := make([]uuid.UUID, len(running))
	for i, a := range running {
		ids[i] = a.lease.Turn
	}
	asked := time.Now()
	rows, err := s.q.LeasesRenew(ctx, s.cfg.Lease.Seconds(), ids, s.cfg.Sessions.Node())
	if err != nil {
		return err
	}
	held := make(map[uuid.UUID]int64, len(rows))
	for _, r := range rows {
		held[r.ID] = r.Epoch
	}
	for _, a := range running {
		if held[a.lease.Turn] != a.lease.Epoch {
			a.cancel(session.ErrLeaseLost)
			continue
		}
		a.mu.Lock()
		a.renewed = asked
		a.mu.Unlock()
	}
	return nil
}

// watch looks at the turn whenever another replica had something to say about its
// session: a cancel, mostly. The heartbeat would find out too, only later.
func (s *Service) watch(ctx context.Context, a *attempt, news <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		t, err := s.q.TurnGet(ctx, a.lease.Turn)
		if err == nil && (session.State(t.State) != session.Running || t.Epoch != a.lease.Epoch) {
			a.cancel(session.ErrLeaseLost)
			return
		}
	}
}
