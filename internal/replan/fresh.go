package replan

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Fresh runs single statements that need a plan for their arguments, such as lists with optional
// filters. PostgreSQL plans each one for its arguments, which takes about a millisecond. A prepared
// statement gets one plan for all arguments after some uses: then a filter for rare rows reads a
// whole table. Fresh implements db.DBTX.
type Fresh struct{ *pgxpool.Pool }

// Exec implements db.DBTX.
func (f Fresh) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if r := rehearsalOf(ctx); r != nil {
		return r.tx.Exec(ctx, sql, args...)
	}
	return f.Pool.Exec(ctx, sql, unprepared(args)...)
}

// Query implements db.DBTX.
func (f Fresh) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if r := rehearsalOf(ctx); r != nil {
		return r.tx.Query(ctx, sql, args...)
	}
	return f.Pool.Query(ctx, sql, unprepared(args)...)
}

// QueryRow implements db.DBTX.
func (f Fresh) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if r := rehearsalOf(ctx); r != nil {
		return r.tx.QueryRow(ctx, sql, args...)
	}
	return f.Pool.QueryRow(ctx, sql, unprepared(args)...)
}
