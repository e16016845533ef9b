package app

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// deadline ends every statement and batch whose response takes longer, and with it the connection.
// PostgreSQL's own statement_timeout comes first if PostgreSQL is reachable, so only a link or a
// backend that stands still reaches this limit.
type deadline struct {
	limit time.Duration // 0: none
	hosts *hosts        // records broken connections; nil: there is one host
}

// endKey is the context key of the function that ends a deadline.
type endKey struct{}

func (d deadline) beginDeadline(ctx context.Context) context.Context {
	if d.limit == 0 {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	return context.WithValue(ctx, endKey{}, cancel)
}

func (d deadline) endDeadline(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() {
		d.hosts.noteLost(conn.PgConn().Conn().RemoteAddr().String())
	}
	if cancel, ok := ctx.Value(endKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (d deadline) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return d.beginDeadline(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (d deadline) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	d.endDeadline(ctx, conn)
}

// TraceBatchStart implements pgx.BatchTracer.
func (d deadline) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return d.beginDeadline(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (d deadline) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (d deadline) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	d.endDeadline(ctx, conn)
}
