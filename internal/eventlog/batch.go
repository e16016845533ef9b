package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
)

// appendEvents is the statement of a batch, and its transaction. A cursor on seq loses no rows
// although the statement's snapshot is older than its locks, because the statement takes only keys
// from that snapshot: locked returns each session's row as its lock found it, a row's epoch and
// ordinal are taken from there, and its seq is drawn after that. clock reads all of locked, so no
// row is written before the last lock is held. Reading a session's row again could return an older
// one.
//
// Sessions that other transactions have locked are left out, so that one does not delay the rest.
//
// Shared values are sent once: w are the leases of the batch, u its rows, which name their lease by
// number and their position o among its rows. held is separate because the planner cannot know how
// many rows an array has.
const appendEvents = `
WITH locked AS MATERIALIZED (
    SELECT id, epoch, last_ord FROM sessions WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), clock AS MATERIALIZED (
    SELECT count(*) AS sessions, clock_timestamp() AS at FROM locked
), held AS MATERIALIZED (
    SELECT w.lease, w.session_id, w.turn_id, l.last_ord
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) WITH ORDINALITY AS w (session_id, turn_id, epoch, lease)
    JOIN locked l ON l.id = w.session_id AND l.epoch = w.epoch
), written AS (
    INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
    SELECT h.session_id, h.turn_id, c.at, u.kind = 'text', h.last_ord + u.o, u.kind, u.data::json
    FROM unnest($4::int[], $5::int[], $6::text[], $7::text[]) WITH ORDINALITY AS u (lease, o, kind, data, i)
    JOIN held h ON h.lease = u.lease CROSS JOIN clock c
    ORDER BY u.i
    RETURNING session_id, seq, ord
), heads AS (
    UPDATE sessions s SET last_seq = h.seq, last_ord = h.ord
    FROM (SELECT session_id, max(seq) AS seq, max(ord) AS ord FROM written GROUP BY session_id) h
    WHERE s.id = h.session_id
)
SELECT l.ids, l.epochs, l.ords, w.seqs, c.at
FROM (SELECT array_agg(id) AS ids, array_agg(epoch) AS epochs, array_agg(last_ord) AS ords FROM locked) l,
     (SELECT array_agg(seq ORDER BY seq) AS seqs FROM written) w, clock c`

// batch is the rows of one commit, arranged for PostgreSQL.
type batch struct {
	rows   []row
	leases []Lease
	lease  []int32 // number of each row's lease, from 1
	place  []int32 // position of each row among its lease's rows, from 1
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

// queueStatement prepares the statement.
func (b *batch) queueStatement() *pgx.Batch {
	// Not uuid.UUID: pgx would format and parse each one.
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
	q.Queue(appendEvents, sessions, turns, epochs, b.lease, b.place, kinds, datas)
	return q
}

// head is a session's row as it was when the batch locked it.
type head struct{ epoch, ord int64 }

// writeBatch makes one round trip: lock, insert, commit. Then it reports to readers and writers. It
// returns the rows of sessions that were locked.
func (a *appender) writeBatch(ctx context.Context, rows []row) (locked []row, err error) {
	conn, err := a.log.pool.Acquire(ctx)
	if err != nil {
		return nil, unsent{fmt.Errorf("acquire a connection: %w", err)}
	}
	defer conn.Release()
	b := newBatch(rows)
	heads := make(map[uuid.UUID]head, len(b.leases))
	crashpoint.Hit("append.before_commit")
	seqs, at, err := b.sendBatch(ctx, conn.Conn(), heads)
	if err != nil && pgconn.SafeToRetry(err) {
		return nil, unsent{err}
	}
	if err != nil {
		return nil, err
	}
	crashpoint.Hit("append.after_commit_before_notify")
	return a.deliverEvents(b, heads, seqs, at)
}

// sendBatch writes the batch. It fills heads with the sessions that it could lock, and returns the
// seqs of the rows that had a valid lease, in their order.
func (b *batch) sendBatch(ctx context.Context, conn *pgx.Conn, heads map[uuid.UUID]head) (seqs []int64, at *time.Time, err error) {
	res := conn.SendBatch(ctx, b.queueStatement())
	defer res.Close()
	var ids pgtype.FlatArray[pgtype.UUID]
	var epochs, ords []int64
	if err := res.QueryRow().Scan(&ids, &epochs, &ords, &seqs, &at); err != nil {
		return nil, nil, fmt.Errorf("insert events: %w", err)
	}
	if err := res.Close(); err != nil {
		return nil, nil, fmt.Errorf("commit events: %w", err)
	}
	for i, id := range ids {
		heads[id.Bytes] = head{epochs[i], ords[i]}
	}
	return seqs, at, nil
}

// deliverEvents passes the committed events to the readers, and acknowledgements to the writers.
// seqs are those of the rows that had a valid lease, in the order of the rows. It returns the rows
// of sessions that were locked.
func (a *appender) deliverEvents(b *batch, heads map[uuid.UUID]head, seqs []int64, at *time.Time) (locked []row, err error) {
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
			a.log.Publish(l.Session, news[i+1])
		}
	}
	for i, r := range b.rows {
		if held[b.lease[i]] {
			r.w.acknowledgeEvents(r.n, nil)
		} else if _, ours := heads[r.w.lease.Session]; ours {
			r.w.acknowledgeEvents(r.n, ErrLeaseLost)
		} else {
			locked = append(locked, r)
		}
	}
	return locked, nil
}
