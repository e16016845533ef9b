package replan_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestRehearsalIsUndone changes rows in every way of the package: each step sees those before it, a
// failed step is undone alone, other connections see nothing, and nothing is left.
func TestRehearsalIsUndone(t *testing.T) {
	t.Parallel()
	pool := written(t)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit)
	defer cancel()
	own := replan.Pool{Pool: pool}
	insert := func(ctx context.Context, n int) error {
		return replan.Pipelined(ctx, pool, func(tx *replan.Tx) error {
			tx.Queue("INSERT INTO written VALUES ($1)", n)
			return nil
		})
	}
	failed := errors.New("failed")
	err := replan.Rehearse(ctx, pool, func(ctx context.Context, r *replan.Rehearsal) error {
		steps := []func() error{
			func() error { return insert(ctx, 1) },
			func() error { _, err := own.Exec(ctx, "INSERT INTO written VALUES (2)"); return err },
			func() error {
				return replan.InTx(ctx, pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, "INSERT INTO written VALUES (3)")
					return errors.Join(err, failed)
				})
			},
			func() error { return errors.Join(insert(ctx, 4), insert(ctx, 1)) }, // a number that is there
			func() error { _, err := own.Exec(ctx, "INSERT INTO written VALUES (2)"); return err },
			func() error {
				var n int
				return replan.Fresh{Pool: pool}.QueryRow(ctx, "SELECT n FROM written WHERE n = 2").Scan(&n)
			},
		}
		for i, step := range steps {
			if err := r.Step(ctx, step); (err != nil) != (i >= 2 && i <= 4) {
				t.Errorf("step %d: %v", i, err)
			}
		}
		if seen, err := numbers(ctx, own); err != nil || !slices.Equal(seen, []int{1, 2}) {
			t.Errorf("inside: %v, %v", seen, err)
		}
		if seen, err := numbers(t.Context(), own); err != nil || len(seen) != 0 {
			t.Errorf("outside: %v, %v", seen, err)
		}
		return nil
	})
	if seen, after := numbers(t.Context(), own); err != nil || after != nil || len(seen) != 0 {
		t.Errorf("after: %v, %v, %v", seen, err, after)
	}
	if err := replan.Rehearse(ctx, pool, func(context.Context, *replan.Rehearsal) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a failure: %v", err)
	}
}
