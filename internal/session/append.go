package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/event"
)

const (
	batchRows  = 4096                 // rows of one commit at most
	busyRows   = 16                   // a batch at least this big makes the next one linger
	linger     = 2 * time.Millisecond // how long it lingers at most
	maxUnacked = 256                  // deltas of one writer that may wait for their commit
	maxMerged  = 32 << 10             // bytes of text that one row takes
)

// The two statements of a batch. They go out in one pipeline, which PostgreSQL
// treats as one transaction. The second takes its snapshot after the first has all
// locks: that, and nothing weaker, keeps a cursor on seq from losing rows.
const (
	lockSessions = `SELECT id, epoch FROM sessions WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE`
	appendEvents = `
WITH news AS (
    SELECT u.*, s.last_ord + row_number() OVER (PARTITION BY u.session_id ORDER BY u.i) AS ord
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[]) WITH ORDINALITY AS u (session_id, turn_id, epoch, kind, data, i)
    JOIN sessions s ON s.id = u.session_id AND s.epoch = u.epoch
), written AS (
    INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
    SELECT session_id, turn_id, clock_timestamp(), kind = 'text', ord, kind, data::json FROM news ORDER BY i
    RETURNING session_id, seq, ord, at
), heads AS (
    UPDATE sessions s SET last_seq = h.seq, last_ord = h.ord
    FROM (SELECT session_id, max(seq) AS seq, max(ord) AS ord FROM written GROUP BY session_id) h
    WHERE s.id = h.session_id
)
SELECT session_id, seq, ord, at FROM written`
)

func defaultAppenders() int {
	if runtime.NumCPU() >= 4 {
		return 2
	}
	return 1
}

// row is an event on its way into the log.
type row struct {
	w    *Writer
	kind event.Kind
	data []byte
	n    int // how many Append calls' worth of events it carries, after merging
}

// appender commits whatever queued while its last commit ran: no timer at rest, a
// short linger under load.
type appender struct {
	s     *Store
	mu    sync.Mutex
	queue []row
	wake  chan struct{}
}

func newAppender(s *Store) *appender {
	return &appender{s: s, wake: make(chan struct{}, 1)}
}

// enqueue adds a row; a text row joins the one before it where that is the same
// writer's text and still waits.
// enqueue adds rows that shall stand side by side.
func (a *appender) enqueue(rows []row) {
	a.mu.Lock()
	a.queue = append(a.queue, rows...)
	a.mu.Unlock()
	signal(a.wake)
}

func (a *appender) run(ctx context.Context) error {
	last := 0
	for {
		select {
		case <-ctx.Done():
			a.fail(errors.New("the service is stopping"))
			return nil
		case <-a.wake:
		}
		if last >= busyRows {
			pause(ctx, linger)
		}
		rows := a.take()
		last = len(rows)
		if last > 0 {
			a.commit(ctx, merge(rows))
		}
	}
}

func (a *appender) take() []row {
	a.mu.Lock()
	defer a.mu.Unlock()
	rows := a.queue
	if len(rows) > batchRows {
		rows, a.queue = rows[:batchRows:batchRows], rows[batchRows:]
		signal(a.wake)
	} else {
		a.queue = nil
	}
	return rows
}

func (a *appender) fail(err error) {
	for _, r := range a.take() {
		r.w.ack(r.n, err)
	}
}

// merge joins a writer's adjacent deltas into one row.
func merge(rows []row) []row {
	last := make(map[*Writer]int, len(rows))
	out := rows[:0:0]
	for _, r := range rows {
		if i, ok := last[r.w]; ok && r.kind == event.KindText && out[i].kind == event.KindText && len(out[i].data) < maxMerged {
			out[i].data = event.MergeText(out[i].data, r.data)
			out[i].n += r.n
			continue
		}
		last[r.w] = len(out)
		out = append(out, r)
	}
	return out
}

// commit writes the rows and tells their writers and readers. A batch that
// PostgreSQL refused whole is tried again; one whose fate is unknown is not, since
// its rows may be there: their turns are resumed from the log instead.
func (a *appender) commit(ctx context.Context, rows []row) {
	delay := 20 * time.Millisecond
	for {
		err := a.write(ctx, rows)
		if err == nil {
			return
		}
		pgErr, refused := errors.AsType[*pgconn.PgError](err)
		if !refused || !transient(pgErr.Code) || delay > 2*time.Second {
			a.s.log.WarnContext(ctx, "append to the log", "rows", len(rows), "err", err)
			for _, r := range rows {
				r.w.ack(r.n, fmt.Errorf("append to the log: %w", err))
			}
			return
		}
		pause(ctx, delay)
		delay *= 2
	}
}

// write is one round trip: lock, insert, commit.
func (a *appender) write(ctx context.Context, rows []row) error {
	var (
		sessions = make([]uuid.UUID, len(rows))
		turns    = make([]uuid.UUID, len(rows))
		epochs   = make([]int64, len(rows))
		kinds    = make([]string, len(rows))
		datas    = make([]string, len(rows))
		seen     = make(map[uuid.UUID]int64, len(rows))
		distinct []uuid.UUID
	)
	for i, r := range rows {
		l := r.w.lease
		sessions[i], turns[i], epochs[i] = l.Session, l.Turn, l.Epoch
		kinds[i], datas[i] = string(r.kind), string(r.data)
		if _, ok := seen[l.Session]; !ok {
			seen[l.Session] = -1
			distinct = append(distinct, l.Session)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(lockSessions, distinct)
	batch.Queue(appendEvents, sessions, turns, epochs, kinds, datas)
	res := a.s.pool.SendBatch(ctx, batch)
	defer res.Close()

	locked, err := res.Query()
	if err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	var id uuid.UUID
	var epoch int64
	if _, err := pgx.ForEachRow(locked, []any{&id, &epoch}, func() error { seen[id] = epoch; return nil }); err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	written, err := res.Query()
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	// PostgreSQL returns a session's rows in the order of their ordinals, which is
	// the order in which they were sent.
	news := make(map[uuid.UUID][]event.Event, len(distinct))
	var ev event.Event
	_, err = pgx.ForEachRow(written, []any{&ev.Session, &ev.Seq, &ev.Ord, &ev.At}, func() error {
		news[ev.Session] = append(news[ev.Session], ev)
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	if err := res.Close(); err != nil {
		return fmt.Errorf("commit events: %w", err)
	}

	next := make(map[uuid.UUID]int, len(distinct))
	for _, r := range rows {
		l := r.w.lease
		if seen[l.Session] != l.Epoch {
			r.w.ack(r.n, ErrLeaseLost)
			continue
		}
		i := next[l.Session]
		next[l.Session]++
		ev := &news[l.Session][i]
		ev.Turn, ev.Kind, ev.Data = l.Turn, r.kind, r.data
	}
	for id, evs := range news {
		a.s.published(id, evs)
	}
	for _, r := range rows {
		if seen[r.w.lease.Session] == r.w.lease.Epoch {
			r.w.ack(r.n, nil)
		}
	}
	return nil
}

// transient tells the refusals that pass: deadlocks, time-outs, a full disk, too
// many connections, a server that starts or stops.
func transient(sqlstate string) bool {
	switch sqlstate[:2] {
	case "40", "53", "55", "57":
		return true
	}
	return false
}

// signal wakes whoever waits on a channel of size one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
