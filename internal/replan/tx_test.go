package replan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// written returns a pool on a database with a table of numbers.
func written(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := dbtest.Pool(t, dbtest.Empty(t))
	if _, err := pool.Exec(t.Context(), "CREATE TABLE written (n int PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return pool
}

func numbers(ctx context.Context, on interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}) ([]int, error) {
	rows, err := on.Query(ctx, "SELECT n FROM written ORDER BY n")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// A query sees the statements queued before it, and the commit sends those queued after it.
func TestQueuedStatementsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	pool := written(t)
	ctx := t.Context()
	var seen []int
	err := replan.Pipelined(ctx, pool, func(tx *replan.Tx) (err error) {
		tx.Queue("INSERT INTO written VALUES ($1)", 1)
		if _, err := tx.Exec(ctx, "INSERT INTO written VALUES ($1)", 2); err != nil {
			return err
		}
		tx.Queue("DELETE FROM written WHERE n = $1", 1)
		if seen, err = numbers(ctx, tx); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, "SELECT n FROM written WHERE n = $1", 1).Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("the deleted row: %d, %v", n, err)
		}
		tx.Queue("INSERT INTO written VALUES ($1)", 3)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := numbers(ctx, pool)
	if diff := cmp.Diff([]int{2}, seen); diff != "" || err != nil {
		t.Errorf("inside (-want +got):\n%s%v", diff, err)
	}
	if diff := cmp.Diff([]int{2, 3}, after); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// The error of a queued statement fails the transaction, whenever it is reported, and the
// connection stays usable.
func TestFailedQueueRollsBack(t *testing.T) {
	t.Parallel()
	pool := written(t)
	ctx := t.Context()
	for name, end := range map[string]func(*replan.Tx) error{
		"commit": func(*replan.Tx) error { return nil },
		"exec":   func(tx *replan.Tx) error { _, err := tx.Exec(ctx, "SELECT 1"); return err },
		"query":  func(tx *replan.Tx) error { _, err := numbers(ctx, tx); return err },
		"flush":  func(tx *replan.Tx) error { return tx.Flush(ctx) },
		"batch": func(tx *replan.Tx) error {
			b := &pgx.Batch{}
			b.Queue("SELECT 1")
			return tx.SendBatch(ctx, b).Close()
		},
	} {
		err := replan.Pipelined(ctx, pool, func(tx *replan.Tx) error {
			tx.Queue("INSERT INTO written VALUES (1)")
			tx.Queue("INSERT INTO written VALUES (1)")
			return end(tx)
		})
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "23505" {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := numbers(ctx, pool); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left: %v", name, left, err)
		}
	}
	if n := pool.Stat().TotalConns(); n != 1 {
		t.Errorf("%d connections were needed", n)
	}
}
