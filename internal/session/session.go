// Package session owns sessions, turns, messages and approvals: the state machine that changes them
// under the session's lock.
//
// It promises: a change happens as a whole or not at all, with the events that record it; a turn
// ends once, with one done event, the last; a session has at most one turn in progress. It never
// runs a turn and does not handle streams.
package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/replan"
)

// Options configure a Store. The zero value works.
type Options struct {
	Log *slog.Logger
	// Replay is how long after its end a turn can be replayed; default 24 h.
	Replay time.Duration
	// Audit is how long a session is kept after its last activity, and how long the log of any
	// session is kept; default 400 days.
	Audit time.Duration
	// Erase removes the content that other packages store for a session.
	Erase []Eraser
	// Late records that a session has an event after the end of its turn, in the transaction that
	// writes the event; nil: nothing is recorded.
	Late func(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error
}

// Eraser removes a session's content from another package's tables, in the transaction that erases
// the session.
type Eraser func(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error

// Store reads and writes sessions.
type Store struct {
	pool   *pgxpool.Pool
	events *eventlog.Log
	q      *db.Queries
	lists  *db.Queries // each query is planned for its filters
	opt    Options
	log    *slog.Logger
	begins group[beginChange]
	claims group[claimChange]
	ends   group[endChange]
	setups knownSetups

	onFinish func(context.Context, Finished)
	once     chan struct{} // limits the concurrent requests under an idempotency key
}

// New returns a store on a migrated database. It announces its commits in events.
func New(pool *pgxpool.Pool, events *eventlog.Log, opt Options) *Store {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Replay == 0 {
		opt.Replay = 24 * time.Hour
	}
	if opt.Audit == 0 {
		opt.Audit = 400 * 24 * time.Hour
	}
	s := &Store{pool: pool, events: events, q: db.New(replan.Pool{Pool: pool}), lists: db.New(replan.Fresh{Pool: pool}),
		opt: opt, log: opt.Log,
		once: make(chan struct{}, onceAbreast(pool.Config().MaxConns))}
	s.begins.commit, s.claims.commit, s.ends.commit = s.beginTurns, s.claimTurns, s.completeTurns
	return s
}

// ReplayWindow is how long after its end a turn can be replayed.
func (s *Store) ReplayWindow() time.Duration { return s.opt.Replay }

// AuditRetention returns how long everything besides text deltas is kept.
func (s *Store) AuditRetention() time.Duration { return s.opt.Audit }

// Run does the housekeeping every hour until ctx ends: it creates the partitions of the log in
// advance, deletes idempotency keys that are a day old, and removes expired data.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := errors.Join(s.events.Prepare(ctx), s.purgeKeys(ctx), s.applyRetention(ctx)); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "housekeeping", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
