package chain

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// readRows reads events of several sessions. A digest needs the bytes of data, so they are read as
// text.
const readRows = `
SELECT w.i, e.session_id, e.turn_id, e.seq, e.ord, e.at, e.delta, e.kind, e.data::text
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY AS w (id, after, last, since, i)
CROSS JOIN LATERAL (
    SELECT * FROM events WHERE session_id = w.id AND seq > w.after AND seq <= w.last AND at >= w.since ORDER BY seq LIMIT $5
) e`

const maxSeq = 1<<63 - 1

// wanted are the arguments of readRows.
type wanted struct {
	ids           []uuid.UUID
	afters, lasts []int64
	sinces        []time.Time
}

func newWanted(n int) *wanted {
	return &wanted{make([]uuid.UUID, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]time.Time, 0, n)}
}

func (w *wanted) add(id uuid.UUID, after, last int64, since time.Time) {
	w.ids, w.afters, w.lasts, w.sinces = append(w.ids, id), append(w.afters, after), append(w.lasts, last), append(w.sinces, since)
}

// querier is a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// read calls add for each event, with the place of its session among those wanted.
func (w *wanted) read(ctx context.Context, on querier, limit int, add func(i int, r *row)) error {
	rows, err := on.Query(ctx, readRows, w.ids, w.afters, w.lasts, w.sinces, limit)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var r row
	var i int64
	_, err = pgx.ForEachRow(rows, []any{&i, &r.session, &r.turn, &r.seq, &r.ord, &r.at, &r.delta, &r.kind, &r.data}, func() error {
		add(int(i)-1, &r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return nil
}
