// Package replan runs transactions and single statements.
//
// It repeats those that failed because the schema has changed under a prepared statement.
// PostgreSQL then rejects the statement with 0A000, and pgx forgets its plan but returns the error.
// The package promises that callers do not see such a change: a transaction or a single statement
// is repeated once, on new plans. It repeats nothing else.
//
// Its transactions send statements without results together with the next one, because a
// transaction's cost is mostly its round trips.
//
// A context with an actor names it to PostgreSQL in each transaction and with each single
// statement. Rehearse rolls back whatever its context changes.
package replan

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/pgerr"
)

// InTx runs fn in a transaction, which it commits if fn returns nil. If a plan is stale, it rolls
// back and runs fn again, so fn must reset the variables that it shares with its caller.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	return Pipelined(ctx, pool, func(tx *Tx) error { return fn(tx) })
}

// Pipelined is InTx for callers that queue statements.
func Pipelined(ctx context.Context, pool *pgxpool.Pool, fn func(*Tx) error) error {
	if r := rehearsalOf(ctx); r != nil {
		return r.part(ctx, fn)
	}
	err := inTx(ctx, pool, nil, fn)
	if !pgerr.IsStalePlan(err) {
		return err
	}
	// The connection may be another one, with stale plans of its own.
	return inTx(ctx, pool, func(conn *pgx.Conn) error { return conn.DeallocateAll(ctx) }, fn)
}

// Pool runs single statements. It implements db.DBTX.
type Pool struct{ *pgxpool.Pool }

// Exec implements db.DBTX.
func (p Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if r := rehearsalOf(ctx); r != nil {
		return r.tx.Exec(ctx, sql, args...)
	}
	if _, ok := p.acting(ctx); ok {
		rows, err := p.Query(ctx, sql, args...)
		if err != nil {
			return pgconn.CommandTag{}, err
		}
		rows.Next() // repeats a statement with a stale plan
		rows.Close()
		return rows.CommandTag(), rows.Err()
	}
	tag, err := p.Pool.Exec(ctx, sql, args...)
	if pgerr.IsStalePlan(err) {
		return p.Pool.Exec(ctx, sql, unprepared(args)...)
	}
	return tag, err
}

// Query implements db.DBTX.
func (p Pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if r := rehearsalOf(ctx); r != nil {
		return r.tx.Query(ctx, sql, args...)
	}
	again := func() (pgx.Rows, error) { return p.Pool.Query(ctx, sql, unprepared(args)...) }
	if a, ok := p.acting(ctx); ok {
		first, err := a.query(ctx, false, sql, args)
		if pgerr.IsStalePlan(err) {
			return a.query(ctx, true, sql, args)
		}
		if err != nil {
			return nil, err
		}
		return &rows{Rows: first, again: func() (pgx.Rows, error) { return a.query(ctx, true, sql, args) }}, nil
	}
	first, err := p.Pool.Query(ctx, sql, args...)
	if pgerr.IsStalePlan(err) {
		return again()
	}
	return &rows{Rows: first, again: again}, err
}

// QueryRow implements db.DBTX.
func (p Pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if r := rehearsalOf(ctx); r != nil {
		return r.tx.QueryRow(ctx, sql, args...)
	}
	if _, ok := p.acting(ctx); ok {
		rows, err := p.Query(ctx, sql, args...)
		return firstRow{rows, err}
	}
	return row{Row: p.Pool.QueryRow(ctx, sql, args...), again: func() pgx.Row { return p.Pool.QueryRow(ctx, sql, unprepared(args)...) }}
}

// unprepared adds the option to a statement's arguments that makes PostgreSQL plan it for this
// single use.
func unprepared(args []any) []any {
	return append([]any{pgx.QueryExecModeDescribeExec}, args...)
}

type row struct {
	pgx.Row
	again func() pgx.Row
}

// Scan implements pgx.Row.
func (r row) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	if pgerr.IsStalePlan(err) {
		return r.again().Scan(dest...)
	}
	return err
}

// rows repeats the query if the first row reveals a stale plan: pgx reports errors of a query only
// then.
type rows struct {
	pgx.Rows
	again func() (pgx.Rows, error)
	begun bool
}

// Next implements pgx.Rows.
func (r *rows) Next() bool {
	ok := r.Rows.Next()
	if ok || r.begun || !pgerr.IsStalePlan(r.Rows.Err()) {
		r.begun = true
		return ok
	}
	r.begun = true
	second, err := r.again()
	if err != nil {
		return false // Err still has the first error
	}
	r.Rows = second
	return second.Next()
}
