// Package ratelimit owns the counts of API keys: requests in a minute and open streams, over all
// replicas.
//
// It promises: a key within its quota is never rejected; one beyond it is rejected without a query
// for every request; opening a stream needs no query. Counts may be lost in a crash, and streams
// that are opened on different replicas within the same second may pass together;
// docs/reference/limits.md has the bounds.
package ratelimit

import (
	"context"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
)

// Limits are the limits of one key. 0 is unlimited.
type Limits struct {
	Messages int // in a minute
	Calls    int // calls of other kinds, in a minute
	Streams  int // open at once
}

// Of returns how many requests of a class a key may make in a minute.
func (l Limits) Of(c Class) int {
	if c == Messages {
		return l.Messages
	}
	return l.Calls
}

// Options configure a Store. The zero value has no limits.
type Options struct {
	Limits
	Node int32        // this process's number among the replicas: session.Store.Node
	Log  *slog.Logger // nil discards
	// Pulse is shared by the parts of a process; nil: the store creates its own.
	Pulse *pulse.Pulse
}

// Store counts requests and streams.
type Store struct {
	opt Options
	q   *db.Queries
	log *slog.Logger

	mu      sync.Mutex
	buckets map[bucketID]*bucket

	streams streams
}

// New returns a store.
func New(pool *pgxpool.Pool, opt Options) *Store {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Pulse == nil {
		opt.Pulse = pulse.New(pool)
	}
	return &Store{opt: opt, q: db.New(replan.Pool{Pool: pool}), log: opt.Log, streams: newStreams()}
}

// Limits returns the default limits, for keys of workspaces without their own.
func (s *Store) Limits() Limits { return s.opt.Limits }

// Run exchanges the counts of open streams with the other replicas every second while any are open,
// until ctx ends. Without Run, only this process's streams are counted.
func (s *Store) Run(ctx context.Context) error {
	exchanges := outage.New(s.log, "exchange the counts of open streams")
	for work := range s.opt.Pulse.Beats(ctx) {
		if work.Streams || s.streams.hasStreams() {
			exchanges.Note(ctx, s.exchangeCounts(ctx))
		}
	}
	return s.withdrawCounts(ctx)
}
