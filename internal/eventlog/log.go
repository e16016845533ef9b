// Package eventlog owns the append-only log of events: the tables events and lineage, and the
// newest place of each session's log, which is stored in the session's row.
//
// It promises: the events of one session rise in commit order; ids are never reused; a reader that
// requests rows after its cursor misses none; a worker that lost its lease writes nothing. It never
// changes a turn and does not handle streams.
package eventlog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
)

// ErrLeaseLost is returned to a worker if its turn has ended or another worker has taken it over.
// The worker then stops and writes nothing more.
var ErrLeaseLost = errors.New("the lease of the turn is lost")

// Lease is the right to write one turn's events, until the session's epoch increases.
type Lease struct {
	Session uuid.UUID
	Turn    uuid.UUID
	Epoch   int64
}

// Options configure a Log. The zero value works.
type Options struct {
	Log *slog.Logger
	// Listen is the connection for LISTEN; it must not use a transaction pooler. Nil uses the
	// pool's own configuration.
	Listen *pgx.ConnConfig
	// Ping is how often the listening connection is tested; default 2 s.
	Ping time.Duration
	// Pulse is shared by the parts of a process; nil: the log creates its own.
	Pulse *pulse.Pulse
	// Appenders is the number of group-commit loops; default 1, or 2 with four CPUs or more.
	Appenders int
	// Patience is how long text waits for the text of other writers; default 4 ms.
	Patience time.Duration
	// AppendTimeout limits the commit of a batch, including retries, and the wait for a session
	// that other transactions have locked; default 5 s. It must be shorter than the lease of a
	// turn.
	AppendTimeout time.Duration
	// Metrics count appends; nil: nothing is counted outside.
	Metrics *metrics.Metrics
	// Dropped records that retention drops a partition, in the transaction that does so; nil:
	// nothing is recorded.
	Dropped func(ctx context.Context, tx pgx.Tx, partition string, deltas bool, ends time.Time) error
}

// Log appends to the logs of all sessions, and reads and follows them.
type Log struct {
	pool      *pgxpool.Pool
	q         *db.Queries
	opt       Options
	node      int32
	topics    topics
	appenders []*appender
	notifier  *notifier
	listener  *listener
	tailer    *tailer
}

// New returns a log on a migrated database. It does nothing before Run.
func New(pool *pgxpool.Pool, opt Options) *Log {
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
	if opt.Metrics == nil {
		opt.Metrics = metrics.New()
	}
	l := &Log{pool: pool, q: db.New(replan.Pool{Pool: pool}), opt: opt, node: newNode()}
	l.topics.init()
	l.notifier = newNotifier(l)
	l.listener = newListener(l)
	l.tailer = newTailer(l)
	for range opt.Appenders {
		l.appenders = append(l.appenders, newAppender(l))
	}
	return l
}

// Node returns this process's number among the replicas: the number of the advisory lock that it
// holds while it lives.
func (l *Log) Node() int32 { return l.node }

// Run listens, notifies and appends until ctx ends. It must be running for
// Append and Follow to make progress.
func (l *Log) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, a := range l.appenders {
		g.Go(func() error { return a.run(ctx) })
	}
	g.Go(func() error { return l.notifier.run(ctx) })
	g.Go(func() error { return l.listener.run(ctx) })
	g.Go(func() error { return l.tailer.run(ctx) })
	g.Go(func() error { return l.tailer.runRechecks(ctx) })
	return g.Wait()
}

// newNode draws a positive number that no other replica has.
func newNode() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return int32(binary.BigEndian.Uint32(b[:])>>1) | 1
}

// QueueLength returns how many rows wait for their commit.
func (l *Log) QueueLength() (n int) {
	for _, a := range l.appenders {
		a.mu.Lock()
		n += len(a.queue)
		a.mu.Unlock()
	}
	return n
}

// ClockOffset returns how far PostgreSQL's clock, which stamps the events, is ahead of the process's.
func (l *Log) ClockOffset() time.Duration { return l.opt.Pulse.Offset() }
