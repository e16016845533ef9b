package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-server/parley/internal/event"
)

// The two statements of a batch. They go out in one pipeline, which PostgreSQL
// treats as one transaction. The second takes its snapshot after the first has all
// locks: that, and nothing weaker, keeps a cursor on seq from losing rows.
//
// Sessions that others have locked are left out, so that one does not hold up the rest. The first
// statement hands the ids that it has locked to the second in a setting of the transaction.
//
// What many rows share is sent once: w are the leases of the batch, u its rows, which
// name their lease by number and know their place o among its rows. held stands
// apart because the planner cannot know how many rows an array has.
const (
	lockSessions = `
WITH locked AS MATERIALIZED (
    SELECT id, epoch, last_ord FROM sessions WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), noted AS MATERIALIZED (
    SELECT set_config('parley.locked', coalesce(array_agg(id)::text, '{}'), true) FROM locked
)
SELECT l.id, l.epoch, l.last_ord FROM noted CROSS JOIN locked l`
	appendEvents = `
WITH held AS MATERIALIZED (
    SELECT w.lease, w.session_id, w.turn_id, s.last_ord
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) WITH ORDINALITY AS w (session_id, turn_id, epoch, lease)
    JOIN sessions s ON s.id = w.session_id AND s.epoch = w.epoch
    WHERE s.id = ANY(nullif(current_setting('parley.locked', true), '')::uuid[])
), written AS (
    INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
    SELECT h.session_id, h.turn_id, statement_timestamp(), u.kind = 'text', h.last_ord + u.o, u.kind, u.data::json
    FROM unnest($4::int[], $5::int[], $6::text[], $7::text[]) WITH ORDINALITY AS u (lease, o, kind, data, i)
    JOIN held h ON h.lease = u.lease
    ORDER BY u.i
    RETURNING session_id, seq, ord, at
), heads AS (
    UPDATE sessions s SET last_seq = h.seq, last_ord = h.ord
    FROM (SELECT session_id, max(seq) AS seq, max(ord) AS ord FROM written GROUP BY session_id) h
    WHERE s.id = h.session_id
)
SELECT array_agg(seq ORDER BY seq), max(at) FROM written`
)

// batch is the rows of one commit, arranged for PostgreSQL.
type batch struct {
	rows   []row
	leases []Lease
	lease  []int32 // of each row, from 1
	place  []int32 // of each row among its lease's, from 1
}

func newBatch(rows []row) *batch {
	b := &batch{rows: rows, lease: make([]int32, len(rows)), place: make([]int32, len(rows))}
	numbers := make(map[Lease]int32, len(rows))
	counts := make([]int32, 1, len(rows)+1)
	for i, r := range rows {
		n, ok := numbers[r.w.lease]
		if !ok {
			n = int32(len(counts))
			numbers[r.w.lease] = n
			b.leases = append(b.leases, r.w.lease)
			counts = append(counts, 0)
		}
		counts[n]++
		b.lease[i], b.place[i] = n, counts[n]
	}
	return b
}

// queue arranges the two statements.
func (b *batch) queue() *pgx.Batch {
	// Not uuid.UUID: pgx would make a string of each one and parse it again.
	sessions := make(pgtype.FlatArray[pgtype.UUID], len(b.leases))
	turns := make(pgtype.FlatArray[pgtype.UUID], len(b.leases))
	epochs := make([]int64, len(b.leases))
	for i, l := range b.leases {
		sessions[i] = pgtype.UUID{Bytes: l.Session, Valid: true}
		turns[i] = pgtype.UUID{Bytes: l.Turn, Valid: true}
		epochs[i] = l.Epoch
	}
	kinds, datas := make([]string, len(b.rows)), make([]string, len(b.rows))
	for i, r := range b.rows {
		kinds[i], datas[i] = string(r.kind), string(r.data)
	}
	q := &pgx.Batch{}
	q.Queue(lockSessions, sessions)
	q.Queue(appendEvents, sessions, turns, epochs, b.lease, b.place, kinds, datas)
	return q
}

// head is a session's row as it was when the batch had its lock.
type head struct{ epoch, ord int64 }

// write is one round trip: lock, insert, commit. Then it reports to readers and writers. It returns
// the rows of sessions that were locked.
func (a *appender) write(ctx context.Context, rows []row) (locked []row, err error) {
	conn, err := a.s.pool.Acquire(ctx)
	if err != nil {
		return nil, unsent{fmt.Errorf("acquire a connection: %w", err)}
	}
	defer conn.Release()
	b := newBatch(rows)
	heads := make(map[uuid.UUID]head, len(b.leases))
	seqs, at, err := b.send(ctx, conn.Conn(), heads)
	if err != nil && pgconn.SafeToRetry(err) {
		return nil, unsent{err}
	}
	if err != nil {
		return nil, err
	}
	return a.tell(b, heads, seqs, at)
}

// send writes the batch. It fills heads with the sessions that it could lock, and returns the seqs
// of the rows whose lease held, in their order.
func (b *batch) send(ctx context.Context, conn *pgx.Conn, heads map[uuid.UUID]head) (seqs []int64, at *time.Time, err error) {
	res := conn.SendBatch(ctx, b.queue())
	defer res.Close()
	found, err := res.Query()
	if err != nil {
		return nil, nil, fmt.Errorf("lock sessions: %w", err)
	}
	var id pgtype.UUID
	var h head
	if _, err := pgx.ForEachRow(found, []any{&id, &h.epoch, &h.ord}, func() error { heads[id.Bytes] = h; return nil }); err != nil {
		return nil, nil, fmt.Errorf("lock sessions: %w", err)
	}
	if err := res.QueryRow().Scan(&seqs, &at); err != nil {
		return nil, nil, fmt.Errorf("insert events: %w", err)
	}
	if err := res.Close(); err != nil {
		return nil, nil, fmt.Errorf("commit events: %w", err)
	}
	return seqs, at, nil
}

// tell hands the committed events to the readers, and their acknowledgements to the
// writers. seqs are those of the rows whose lease held, in the order of the rows. It returns the
// rows of sessions that were locked.
func (a *appender) tell(b *batch, heads map[uuid.UUID]head, seqs []int64, at *time.Time) (locked []row, err error) {
	held := make([]bool, len(b.leases)+1)
	news := make([][]event.Event, len(b.leases)+1)
	alive := 0
	for i, l := range b.leases {
		h, ok := heads[l.Session]
		held[i+1] = ok && h.epoch == l.Epoch
	}
	for _, n := range b.lease {
		if held[n] {
			alive++
		}
	}
	if alive != len(seqs) {
		return nil, fmt.Errorf("%d of %d events were written", len(seqs), alive)
	}
	for i, r := range b.rows {
		n := b.lease[i]
		if !held[n] {
			continue
		}
		l := r.w.lease
		news[n] = append(news[n], event.Event{
			Seq: seqs[0], Ord: heads[l.Session].ord + int64(b.place[i]), Session: l.Session, Turn: l.Turn,
			At: *at, Kind: r.kind, Data: r.data,
		})
		seqs = seqs[1:]
	}
	for i, l := range b.leases {
		if held[i+1] {
			a.s.published(l.Session, news[i+1])
		}
	}
	for i, r := range b.rows {
		if held[b.lease[i]] {
			r.w.ack(r.n, nil)
		} else if _, ours := heads[r.w.lease.Session]; ours {
			r.w.ack(r.n, ErrLeaseLost)
		} else {
			locked = append(locked, r)
		}
	}
	return locked, nil
}
