package replan

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/actor"
)

// Tx is a transaction that saves round trips. BEGIN is sent with the first statement, a queued
// statement with the next one, and COMMIT with the statements that are still queued. The order of
// the statements is the order of the calls. It belongs to one goroutine and implements pgx.Tx.
type Tx struct {
	conn   *pgx.Conn
	queued *pgx.Batch // starts with BEGIN, and the actor of the context, until they are sent
	opens  int        // number of statements at its start
	sent   bool       // PostgreSQL may have an open transaction
	closed bool
}

func newTx(ctx context.Context, conn *pgx.Conn) *Tx {
	t := &Tx{conn: conn, queued: &pgx.Batch{}}
	t.queued.Queue("begin")
	if text, ok := actor.Setting(ctx); ok {
		t.queued.Queue(setActor, text)
	}
	t.opens = t.queued.Len()
	return t
}

// Queue adds a statement without a result. The next statement, or the commit, returns its error.
func (t *Tx) Queue(sql string, args ...any) { t.queued.Queue(sql, args...) }

// Later returns an interface for statements that return only an error: they are queued.
func (t *Tx) Later() Later { return Later{t} }

// send sends the queued statements and another one. It reads all results except the last.
func (t *Tx) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	if t.closed {
		return nil, pgx.ErrTxClosed
	}
	b := t.queued
	b.Queue(sql, args...)
	t.queued, t.sent = &pgx.Batch{}, true
	res := t.conn.SendBatch(ctx, b)
	for range b.Len() - 1 {
		if _, err := res.Exec(); err != nil {
			_ = res.Close()
			return nil, err
		}
	}
	return res, nil
}

// Exec implements pgx.Tx.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	res, err := t.send(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := res.Exec()
	return tag, errors.Join(err, closing(res, err))
}

// closing closes the results of a batch. After an error of a statement it returns only that error.
func closing(res pgx.BatchResults, failed error) error {
	if err := res.Close(); failed == nil {
		return err
	}
	return nil
}

// Query implements pgx.Tx.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	res, err := t.send(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	rows, err := res.Query()
	if err != nil {
		_ = res.Close()
		return nil, err
	}
	return &batchRows{Rows: rows, res: res}, nil
}

// QueryRow implements pgx.Tx.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := t.Query(ctx, sql, args...)
	return firstRow{rows, err}
}

// Commit implements pgx.Tx. A transaction without a statement never reaches PostgreSQL.
func (t *Tx) Commit(ctx context.Context) error {
	if !t.sent && t.queued.Len() == t.opens && !t.closed {
		t.closed = true
		return nil
	}
	tag, err := t.Exec(ctx, "commit")
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	t.closed = t.closed || err == nil
	return err
}

// Rollback implements pgx.Tx. It drops the queued statements.
func (t *Tx) Rollback(ctx context.Context) error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	t.closed, t.queued = true, &pgx.Batch{}
	if !t.sent || t.conn.IsClosed() {
		return nil
	}
	_, err := t.conn.Exec(ctx, "rollback")
	if err != nil {
		_ = t.conn.Close(ctx) // the state of the connection is unknown
	}
	return err
}

// Begin implements pgx.Tx. Savepoints are not supported.
func (t *Tx) Begin(context.Context) (pgx.Tx, error) { return nil, errors.ErrUnsupported }

// CopyFrom implements pgx.Tx.
func (t *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.Flush(ctx); err != nil {
		return 0, err
	}
	return t.conn.CopyFrom(ctx, table, columns, rows)
}

// SendBatch implements pgx.Tx. The results are those of b; the first one returns the error of a
// queued statement.
func (t *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	all := t.queued
	n := all.Len()
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	t.queued, t.sent = &pgx.Batch{}, true
	res := t.conn.SendBatch(ctx, all)
	for range n {
		if _, err := res.Exec(); err != nil {
			break // every later result has the same error
		}
	}
	return res
}

// Flush sends the queued statements.
func (t *Tx) Flush(ctx context.Context) error {
	if t.queued.Len() == 0 {
		return nil
	}
	_, err := t.Exec(ctx, "select")
	return err
}

// LargeObjects implements pgx.Tx.
func (t *Tx) LargeObjects() pgx.LargeObjects { panic("large objects are not used") }

// Prepare implements pgx.Tx.
func (t *Tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return t.conn.Prepare(ctx, name, sql)
}

// Conn implements pgx.Tx.
func (t *Tx) Conn() *pgx.Conn { return t.conn }

// Later queues statements. It implements db.DBTX for queries of the kind :exec.
type Later struct{ tx *Tx }

// Exec queues a statement. The tag is always empty.
func (l Later) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	l.tx.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

// Query implements db.DBTX. A statement with rows cannot be queued.
func (l Later) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return nil, errors.ErrUnsupported
}

// QueryRow implements db.DBTX. A statement with a row cannot be queued.
func (l Later) QueryRow(context.Context, string, ...any) pgx.Row {
	return firstRow{err: errors.ErrUnsupported}
}

// batchRows are the rows of a batch's last statement. Closing them ends the batch.
type batchRows struct {
	pgx.Rows
	res    pgx.BatchResults
	closed bool
	err    error
}

// Next implements pgx.Rows.
func (r *batchRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close implements pgx.Rows.
func (r *batchRows) Close() {
	r.Rows.Close()
	if !r.closed {
		r.closed, r.err = true, closing(r.res, r.Rows.Err())
	}
}

// Err implements pgx.Rows.
func (r *batchRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// firstRow is the first of some rows.
type firstRow struct {
	rows pgx.Rows
	err  error
}

// Scan implements pgx.Row.
func (r firstRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// inTx runs fn in one transaction.
func inTx(ctx context.Context, pool *pgxpool.Pool, prepare func(*pgx.Conn) error, fn func(*Tx) error) (err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if prepare != nil {
		if err := prepare(conn.Conn()); err != nil {
			return err
		}
	}
	tx := newTx(ctx, conn.Conn())
	defer func() {
		if !tx.closed {
			_ = tx.Rollback(ctx)
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
