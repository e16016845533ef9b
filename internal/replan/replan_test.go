package replan_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const read = "SELECT n FROM widened WHERE n < $1 ORDER BY n"

// stale returns a pool on which every connection has a statement whose plan no longer fits.
func stale(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := dbtest.Pool(t, dbtest.Empty(t))
	ctx := t.Context()
	if _, err := pool.Exec(ctx, "CREATE TABLE widened (n int); INSERT INTO widened VALUES (1), (2)"); err != nil {
		t.Fatal(err)
	}
	conns := make([]*pgxpool.Conn, pool.Config().MaxConns)
	for i := range conns {
		var err error
		if conns[i], err = pool.Acquire(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := conns[i].Exec(ctx, read, 3); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conns[0].Exec(ctx, "ALTER TABLE widened ALTER COLUMN n TYPE bigint"); err != nil {
		t.Fatal(err)
	}
	for _, c := range conns {
		c.Release()
	}
	return pool
}

// TestSingleStatementsOutliveAChangeOfTheSchema runs statements that fail on all eight connections
// unless they are repeated.
func TestSingleStatementsOutliveAChangeOfTheSchema(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(context.Context, replan.Pool) error{
		"row": func(ctx context.Context, p replan.Pool) error {
			var n int64
			return p.QueryRow(ctx, read, 3).Scan(&n)
		},
		"exec": func(ctx context.Context, p replan.Pool) error {
			_, err := p.Exec(ctx, read, 3)
			return err
		},
		"rows": func(ctx context.Context, p replan.Pool) error {
			rows, err := p.Query(ctx, read, 3)
			if err != nil {
				return err
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err == nil && (len(got) != 2 || got[0] != 1 || got[1] != 2) {
				t.Errorf("rows %v", got)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := stale(t)
			for range 2 * pool.Config().MaxConns {
				if err := use(t.Context(), replan.Pool{Pool: pool}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestTransactionsOutliveAChangeOfTheSchema(t *testing.T) {
	t.Parallel()
	pool := stale(t)
	ran, committed := 0, 0
	for range 2 * pool.Config().MaxConns {
		err := replan.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			ran++
			if _, err := tx.Exec(t.Context(), "INSERT INTO widened VALUES (3)"); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), read, 3)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		committed++
	}
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM widened WHERE n = 3").Scan(&n); err != nil || n != committed {
		t.Errorf("%d rows of %d transactions: %v", n, committed, err)
	}
	if ran == committed {
		t.Error("no plan was stale: the test checks nothing")
	}
}
