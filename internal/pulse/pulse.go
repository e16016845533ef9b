// Package pulse reads once a second, in one statement for all parts of a process, which kinds of
// work exist in the database, and PostgreSQL's clock.
//
// It promises that the next beat reports a row that needs work, and that a beat with a failed read
// reports every kind of work: then each part checks for itself. It never does the work.
package pulse

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
)

const (
	// Every is the time between two beats.
	Every = time.Second
	// readTimeout limits one reading. A clock that took longer to read would not be exact.
	readTimeout = time.Second
	// settled is a safe upper limit for the time between drawing an event's seq and its commit: the
	// limits of statements and of idle transactions on both sides are shorter.
	settled = 20 * time.Second
)

// Work reports which kinds of work exist.
type Work struct {
	Running    bool // turns run, here or on another replica
	Queued     bool // turns are queued
	Overdue    bool // approvals have expired
	Connects   bool // turns wait for a grant of a tool server
	Deliveries bool // callbacks wait for an attempt
	Fetches    bool // files wait for a fetch
	Streams    bool // a replica has open streams
	Paused     bool // an administrator has paused a workspace or the server
	Written    bool // turns run, or events may have been committed since the last beat
}

// unknown is the work that a beat reports after a failed reading.
var unknown = Work{Running: true, Queued: true, Overdue: true, Connects: true, Deliveries: true, Fetches: true, Streams: true, Paused: true,
	Written: true}

// Pulse is shared by the parts of a process. It has no goroutine of its own: the first part that
// reaches a beat reads for all.
type Pulse struct {
	pool   *pgxpool.Pool
	began  time.Time
	paused atomic.Bool  // the server was paused at the newest reading
	offset atomic.Int64 // nanoseconds by which PostgreSQL's clock is ahead of the process's

	mu   sync.Mutex // held while reading
	beat int64      // number of the newest reading
	work Work
	err  error
	seq  int64     // seq of the newest event
	drew time.Time // when seq last rose
}

// New returns a pulse.
func New(pool *pgxpool.Pool) *Pulse { return &Pulse{pool: pool, began: time.Now(), beat: -1} }

// Offset returns how far PostgreSQL's clock was ahead of the process's at the newest reading.
func (p *Pulse) Offset() time.Duration { return time.Duration(p.offset.Load()) }

// IsPaused reports whether an administrator had paused the server at the newest reading.
func (p *Pulse) IsPaused() bool { return p.paused.Load() }

// Beats yields the work at once and then at every beat, until ctx ends or the caller breaks the
// loop. The error is that of the reading. After a failed reading, and after a beat that the caller
// has missed, every kind of work is reported once, so that the caller's own checks end their
// outages.
func (p *Pulse) Beats(ctx context.Context) iter.Seq2[Work, error] {
	return func(yield func(Work, error) bool) {
		doubt, due := false, int64(time.Since(p.began)/Every)
		for ctx.Err() == nil {
			beat := int64(time.Since(p.began) / Every)
			work, err := p.read(ctx, beat)
			if doubt || beat != due {
				work = unknown
			}
			if !yield(work, err) {
				return
			}
			doubt, due = err != nil, beat+1
			next := time.NewTimer(time.Until(p.began.Add(time.Duration(beat+1) * Every)))
			select {
			case <-ctx.Done():
				next.Stop()
			case <-next.C:
			}
		}
	}
}

// read returns the reading of a beat. The first caller makes it.
func (p *Pulse) read(ctx context.Context, beat int64) (Work, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if beat > p.beat {
		p.beat = beat
		if p.work, p.err = p.ask(context.WithoutCancel(ctx)); p.err != nil {
			p.work = unknown
		}
	}
	return p.work, p.err
}

func (p *Pulse) ask(ctx context.Context) (Work, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	conn, err := p.pool.Acquire(ctx) // first: the time of the clock's reading must not include it
	if err != nil {
		return unknown, err
	}
	defer conn.Release()
	asked := time.Now()
	row, err := db.New(conn).PulseRead(ctx)
	if err != nil {
		return unknown, err
	}
	took := time.Since(asked)
	p.paused.Store(row.ServerPaused)
	p.offset.Store(int64(row.Now.Sub(asked.Add(took / 2))))
	if row.Seq != p.seq {
		p.seq, p.drew = row.Seq, asked
	}
	return Work{Running: row.Running, Queued: row.Queued, Overdue: row.Overdue, Connects: row.Connects, Deliveries: row.Deliveries,
		Fetches: row.Fetches,
		Streams: row.Streams, Paused: row.ServerPaused || row.WorkspacePaused, Written: row.Running || asked.Sub(p.drew) < settled}, nil
}
