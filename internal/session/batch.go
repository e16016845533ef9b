package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-server/parley/internal/event"
)

// The two statements of a batch. They go out in one pipeline, which PostgreSQL
// treats as one transaction. The second takes its snapshot after the first has all
// locks: that, and nothing weaker, keeps a cursor on seq from losing rows.
//
// What many rows share is sent once: w are the leases of the batch, u its rows, which
// name their lease by number and know their place o among its rows. held stands
// apart because the planner cannot know how many rows an array has.
const (
	lockSessions = `SELECT id, epoch, last_ord FROM sessions WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE`
	appendEvents = `
WITH held AS MATERIALIZED (
    SELECT w.lease, w.session_id, w.turn_id, s.last_ord
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) WITH ORDINALITY AS w (session_id, turn_id, epoch, lease)
    JOIN sessions s ON s.id = w.session_id AND s.epoch = w.epoch
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

// write is one round trip: lock, insert, commit. Then readers and writers hear of it.
func (a *appender) write(ctx context.Context, rows []row) error {
	b := newBatch(rows)
	res := a.s.pool.SendBatch(ctx, b.queue())
	defer res.Close()
	heads := make(map[uuid.UUID]head, len(b.leases))
	locked, err := res.Query()
	if err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	var id pgtype.UUID
	var h head
	if _, err := pgx.ForEachRow(locked, []any{&id, &h.epoch, &h.ord}, func() error { heads[id.Bytes] = h; return nil }); err != nil {
		return fmt.Errorf("lock sessions: %w", err)
	}
	var seqs []int64
	var at *time.Time
	if err := res.QueryRow().Scan(&seqs, &at); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	if err := res.Close(); err != nil {
		return fmt.Errorf("commit events: %w", err)
	}
	return a.tell(b, heads, seqs, at)
}

// tell hands the committed events to the readers, and their acknowledgements to the
// writers. seqs are those of the rows whose lease held, in the order of the rows.
func (a *appender) tell(b *batch, heads map[uuid.UUID]head, seqs []int64, at *time.Time) error {
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
		return fmt.Errorf("%d of %d events were written", len(seqs), alive)
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
		} else {
			r.w.ack(r.n, ErrLeaseLost)
		}
	}
	return nil
}
