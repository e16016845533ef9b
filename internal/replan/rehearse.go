package replan

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/pgerr"
)

// Rehearsal is a transaction that is rolled back at its end. It belongs to one goroutine.
type Rehearsal struct{ tx *Tx }

type rehearsalKey struct{}

var errRehearsed = errors.New("replan: the end of a rehearsal")

// Rehearse runs fn in a transaction that it rolls back. The transactions and the single statements
// that this package runs with the context of fn are parts of it: each one sees the changes of those
// before it, and no other connection sees any.
func Rehearse(ctx context.Context, pool *pgxpool.Pool, fn func(context.Context, *Rehearsal) error) error {
	err := Pipelined(ctx, pool, func(tx *Tx) error {
		r := &Rehearsal{tx}
		if err := fn(context.WithValue(ctx, rehearsalKey{}, r), r); err != nil {
			return err
		}
		return errRehearsed
	})
	if errors.Is(err, errRehearsed) {
		return nil
	}
	return err
}

// RehearseOn returns Rehearse on a pool.
func RehearseOn(pool *pgxpool.Pool) func(context.Context, func(context.Context, *Rehearsal) error) error {
	return func(ctx context.Context, fn func(context.Context, *Rehearsal) error) error {
		return Rehearse(ctx, pool, fn)
	}
}

// IsRehearsal reports whether what a context writes is rolled back.
func IsRehearsal(ctx context.Context) bool { return rehearsalOf(ctx) != nil }

func rehearsalOf(ctx context.Context) *Rehearsal {
	r, _ := ctx.Value(rehearsalKey{}).(*Rehearsal)
	return r
}

// Step runs a part of the rehearsal. If fn fails, its changes are undone, and the rehearsal can
// continue.
func (r *Rehearsal) Step(ctx context.Context, fn func() error) error {
	return r.part(ctx, func(*Tx) error { return fn() })
}

// part runs fn behind a savepoint. It repeats fn once if a plan is stale.
func (r *Rehearsal) part(ctx context.Context, fn func(*Tx) error) error {
	err := r.try(ctx, fn)
	if !pgerr.IsStalePlan(err) {
		return err
	}
	if err := r.tx.conn.DeallocateAll(ctx); err != nil {
		return err
	}
	return r.try(ctx, fn)
}

func (r *Rehearsal) try(ctx context.Context, fn func(*Tx) error) error {
	if _, err := r.tx.Exec(ctx, "savepoint part"); err != nil {
		return err
	}
	err := fn(r.tx)
	if err == nil {
		_, err = r.tx.Exec(ctx, "release savepoint part") // sends what is queued
	}
	if err == nil {
		return nil
	}
	r.tx.queued = &pgx.Batch{}
	// PostgreSQL prepares no other statement before this one.
	_, undo := r.tx.conn.Exec(ctx, "rollback to savepoint part; release savepoint part", pgx.QueryExecModeSimpleProtocol)
	return errors.Join(err, undo)
}
