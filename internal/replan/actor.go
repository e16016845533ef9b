package replan

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/actor"
)

// setActor names the actor of the statements that follow in the same transaction.
const setActor = "SELECT set_config('parley.actor', $1, true)"

// acting runs single statements of a context with an actor. Each one shares an implicit transaction
// with setActor, so that it costs no more round trips.
type acting struct {
	pool  *pgxpool.Pool
	actor string
}

func (p Pool) acting(ctx context.Context) (acting, bool) {
	text, ok := actor.Setting(ctx)
	return acting{p.Pool, text}, ok
}

// query runs a statement. fresh drops all plans of the connection first.
func (a acting) query(ctx context.Context, fresh bool, sql string, args []any) (pgx.Rows, error) {
	conn, err := a.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := conn.Conn().DeallocateAll(ctx); err != nil {
			conn.Release()
			return nil, err
		}
	}
	b := &pgx.Batch{}
	b.Queue(setActor, a.actor)
	b.Queue(sql, args...)
	res := heldResults{conn.SendBatch(ctx, b), conn}
	if _, err := res.Exec(); err != nil {
		_ = res.Close()
		return nil, err
	}
	rows, err := res.Query()
	if err != nil {
		_ = res.Close()
		return nil, err
	}
	return &batchRows{Rows: rows, res: res}, nil
}

// heldResults releases its connection at the end.
type heldResults struct {
	pgx.BatchResults
	conn *pgxpool.Conn
}

// Close implements pgx.BatchResults.
func (r heldResults) Close() error {
	defer r.conn.Release()
	return r.BatchResults.Close()
}
