// Package session owns sessions, turns, messages and the log of events.
//
// It promises: events of one session rise in commit order, are never reused and
// never lost to a reader that asks for rows after its cursor; a turn ends once,
// with one done event, the last; who lost the right to write a turn writes nothing.
// It never runs a turn and never knows what a stream is.
package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
)

// ErrLeaseLost is returned to a worker whose turn was ended or taken over by another worker. The
// worker then stops and writes nothing more.
var ErrLeaseLost = errors.New("the lease of the turn is lost")

// Lease is the right to write one turn's events, until the session's epoch moves on.
type Lease struct {
	Session uuid.UUID
	Turn    uuid.UUID
	Epoch   int64
}

// Options configure a Store. The zero value works.
type Options struct {
	Log *slog.Logger
	// Listen is the connection for LISTEN; it must not go through a transaction
	// pooler. Nil takes the pool's own configuration.
	Listen *pgx.ConnConfig
	// Ping is how often the listening connection is tested; default 2 s.
	Ping time.Duration
	// Pulse is shared by the parts of a process; nil: the store has its own.
	Pulse *pulse.Pulse
	// Appenders is the number of group-commit loops; default 1, and 2 from four CPUs on.
	Appenders int
	// Patience is how long text waits for that of other writers; default 4 ms.
	Patience time.Duration
	// AppendTimeout bounds the commit of a batch, repetitions included, and the wait for a session
	// that others have locked; default 5 s. It must be shorter than the lease of a turn.
	AppendTimeout time.Duration
	// Replay is how long after its end a turn can be replayed; default 24 h.
	Replay time.Duration
	// Audit is how long a session is kept after the last thing that happened in it, and
	// the log of any session; default 400 days.
	Audit time.Duration
	// Erase removes what others keep of a session.
	Erase []Eraser
}

// Eraser removes a session's content from another package's tables, in the transaction that erases
// the session.
type Eraser func(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error

// Store reads and writes sessions.
type Store struct {
	pool      *pgxpool.Pool
	q         *db.Queries
	lists     *db.Queries // each query is planned for its filters
	opt       Options
	log       *slog.Logger
	node      int32
	topics    topics
	appenders []*appender
	notifier  *notifier
	listener  *listener
	tailer    *tailer
	begins    group[beginChange]
	ends      group[endChange]
	once      chan struct{} // requests under an idempotency key, as many as may be
}

// New makes a store on a migrated database. Nothing moves before Run.
func New(pool *pgxpool.Pool, opt Options) *Store {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Listen == nil {
		opt.Listen = pool.Config().ConnConfig.Copy()
	}
	if opt.Ping == 0 {
		opt.Ping = 2 * time.Second
	}
	if opt.Pulse == nil {
		opt.Pulse = pulse.New(pool)
	}
	if opt.Appenders == 0 {
		opt.Appenders = defaultAppenders()
	}
	if opt.Patience == 0 {
		opt.Patience = defaultPatience
	}
	if opt.AppendTimeout == 0 {
		opt.AppendTimeout = 5 * time.Second
	}
	if opt.Replay == 0 {
		opt.Replay = 24 * time.Hour
	}
	if opt.Audit == 0 {
		opt.Audit = 400 * 24 * time.Hour
	}
	s := &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), lists: db.New(replan.Fresh{Pool: pool}), opt: opt, log: opt.Log, node: newNode(), once: make(chan struct{}, onceAbreast(pool.Config().MaxConns))}
	s.topics.init()
	s.begins.commit, s.ends.commit = s.begin, s.complete
	s.notifier = newNotifier(s)
	s.listener = newListener(s)
	s.tailer = newTailer(s)
	for range opt.Appenders {
		s.appenders = append(s.appenders, newAppender(s))
	}
	return s
}

// Node is this process's name among the replicas: the number of the advisory lock
// that it holds while it lives.
func (s *Store) Node() int32 { return s.node }

// ReplayWindow is how long after its end a turn can be replayed.
func (s *Store) ReplayWindow() time.Duration { return s.opt.Replay }

// Run listens, notifies and appends until ctx ends. It must be running for
// Append and Follow to make progress.
func (s *Store) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, a := range s.appenders {
		g.Go(func() error { return a.run(ctx) })
	}
	g.Go(func() error { return s.notifier.run(ctx) })
	g.Go(func() error { return s.listener.run(ctx) })
	g.Go(func() error { return s.tailer.run(ctx) })
	g.Go(func() error { return s.tailer.runRechecks(ctx) })
	g.Go(func() error { return s.housekeep(ctx) })
	return g.Wait()
}

// Prepare makes the partitions of the log for the coming days. It must have
// succeeded once before anything is written; Run repeats it every hour.
func (s *Store) Prepare(ctx context.Context) error {
	if _, err := s.q.EventsPartitions(ctx, 4); err != nil {
		return fmt.Errorf("make partitions of the event log: %w", err)
	}
	return nil
}

// housekeep keeps the partitions ahead of the clock, forgets idempotency keys that are
// a day old, and removes what is past its time.
func (s *Store) housekeep(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := errors.Join(s.Prepare(ctx), s.purgeKeys(ctx), s.retain(ctx)); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "housekeeping", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// newNode draws a positive number that no other replica has.
func newNode() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return int32(binary.BigEndian.Uint32(b[:])>>1) | 1
}
