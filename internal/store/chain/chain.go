// Package chain makes changes of the log visible that the server has not made. It owns the tables
// chain_links, chain_notices and chain_keys.
//
// A link has the digests of events of one session, follows the link before it by a hash, and is
// signed with a key that only the server has. It promises: Verify names the first event that was
// changed, removed, inserted or reordered after its link was made; retention, erasure, another
// master key and another replica do not make it report anything. It never writes an event, and no
// turn waits for it.
package chain

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/vault"
)

const (
	// settled is a safe upper limit for the time between the end of a turn on PostgreSQL's clock and
	// its commit.
	settled = 10 * time.Second
	// skew is how far the clock of PostgreSQL may have been set back.
	skew = time.Hour

	batchTurns   = 256  // turns in one transaction
	batchNotices = 64   // notices in one transaction
	linkRowLimit = 2000 // events that one link covers

	// idleBeats is how many beats without new events pass between two looks for notices.
	idleBeats = 10
)

// Options configure a Store. The zero value works.
type Options struct {
	Log   *slog.Logger
	Pulse *pulse.Pulse // nil: Run makes its own
	Heads []HeadStore  // in which Run stores the head of the chain
}

// Store extends and verifies the chain.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
	keys *vault.Keyring
	opt  Options

	covered  moment   // when this process last found that the chain covers all turns that have ended
	anchored []moment // for each place: when it last had the newest head
}

// moment is the last time of something.
type moment struct{ atomic.Pointer[time.Time] }

func (m *moment) mark() { m.Store(new(time.Now())) }

func (m *moment) age() time.Duration { return time.Since(*m.Load()) }

// New returns a store. Without keys, nil, it can only record notices, and verify with given keys.
func New(pool *pgxpool.Pool, keys *vault.Keyring, opt Options) *Store {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Pulse == nil {
		opt.Pulse = pulse.New(pool)
	}
	s := &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), keys: keys, opt: opt, anchored: make([]moment, len(opt.Heads))}
	s.covered.mark()
	for i := range s.anchored {
		s.anchored[i].mark()
	}
	return s
}

// CoverLag returns the time since this process last found that the chain covers all turns that have
// ended, or since it started.
func (s *Store) CoverLag() time.Duration { return s.covered.age() }

// HeadLag returns the time since a place last had the newest head, or since the process started, for
// the place that is furthest behind. It is 0 without places.
func (s *Store) HeadLag() (lag time.Duration) {
	for i := range s.anchored {
		lag = max(lag, s.anchored[i].age())
	}
	return lag
}

// Run extends the chain once a second while events are written, until ctx ends. Every replica runs
// it; a transaction that finds another one at work does nothing.
func (s *Store) Run(ctx context.Context) error {
	trouble := outage.New(s.opt.Log, "extend the chain of the log")
	var wg sync.WaitGroup
	defer wg.Wait()
	grown := make([]chan struct{}, len(s.opt.Heads))
	for i, to := range s.opt.Heads {
		grown[i] = make(chan struct{}, 1)
		wg.Go(func() { s.feedAnchor(ctx, to, grown[i], &s.anchored[i]) })
	}
	beats := 0
	for work := range s.opt.Pulse.Beats(ctx) {
		beats++
		if !work.Written && beats%idleBeats != 1 {
			continue
		}
		trouble.Note(ctx, s.Extend(ctx))
		for _, c := range grown {
			select {
			case c <- struct{}{}:
			default: // it has not read the beat before
			}
		}
	}
	return nil
}

// Extend covers all turns that have ended, and all notices.
func (s *Store) Extend(ctx context.Context) error {
	for {
		more, err := s.extendOnce(ctx)
		if err != nil || !more {
			return err
		}
	}
}
