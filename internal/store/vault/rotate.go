package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// Rotation is the result of Rotate.
type Rotation struct {
	Rewrapped int      // envelopes
	Retired   []string // ids of keys under which nothing is sealed any more
}

// ErrStillSealing means that a replica sealed under an old key while keys were rotated.
var ErrStillSealing = errors.New("vault: a replica still seals under an old key")

// Rotate wraps every envelope of the database under the newest key, without changing values, and
// retires the other keys. It may be interrupted and run again, and runs beside a service in which
// every replica has the newest key.
func (s *Store) Rotate(ctx context.Context) (Rotation, error) {
	var r Rotation
	if err := s.Prepare(ctx); err != nil {
		return r, err
	}
	columns, err := s.sealedColumns(ctx)
	if err != nil {
		return r, err
	}
	for _, c := range columns {
		for found := true; found; { // repeated for rows that were changed meanwhile
			var n int
			found, n, err = s.passColumn(ctx, c)
			r.Rewrapped += n
			if err != nil {
				return r, fmt.Errorf("rewrap %s.%s: %w", c.Table, c.Column, err)
			}
		}
	}
	r.Retired, err = s.q.VaultKeysRetire(ctx, s.keys.IDs()[0])
	if pgerr.IsForeignKeyViolation(err) {
		return r, ErrStillSealing
	}
	if err != nil {
		return r, fmt.Errorf("retire keys: %w", err)
	}
	return r, nil
}

// column is a column of type sealed, with both names quoted for SQL.
type column struct{ Table, Column string }

// sealedColumns reads the catalogue, so that no column can be forgotten.
func (s *Store) sealedColumns(ctx context.Context) ([]column, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT c.oid::regclass::text, quote_ident(a.attname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.atttypid = 'sealed'::regtype AND NOT a.attisdropped AND c.relkind = 'r' AND c.oid <> 'vault_keys'::regclass
		ORDER BY 1, 2`)
	if err == nil {
		var columns []column
		if columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[column]); err == nil {
			return columns, nil
		}
	}
	return nil, fmt.Errorf("find sealed columns: %w", err)
}

// batchSize is how many rows are locked at once, briefly.
const batchSize = 200

// old is an envelope under an old key, and its place.
type old struct {
	At       string // ctid
	Envelope []byte
}

// passColumn reads a column once, in the order of its pages.
func (s *Store) passColumn(ctx context.Context, c column) (found bool, rewrapped int, err error) {
	for after := "(0,0)"; ; {
		var batch []old
		err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
			// Reading a big table may take longer than a query should.
			if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '10min'`); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, fmt.Sprintf(
				`SELECT ctid::text, %[2]s FROM %[1]s WHERE ctid > $1::text::tid AND sealed_under(%[2]s) <> $2 ORDER BY ctid LIMIT $3`,
				c.Table, c.Column), after, s.keys.IDs()[0], batchSize)
			if err != nil {
				return err
			}
			if batch, err = pgx.CollectRows(rows, pgx.RowToStructByPos[old]); err != nil {
				return err
			}
			n, err := s.rewrapBatch(ctx, tx, c, batch)
			rewrapped += n
			return err
		})
		if err != nil || len(batch) == 0 {
			return found, rewrapped, err
		}
		found, after = true, batch[len(batch)-1].At
	}
}

// rewrapBatch replaces envelopes that have not changed since they were read. A ctid may belong to
// another row by now, so the envelope has to be the same too.
func (s *Store) rewrapBatch(ctx context.Context, tx pgx.Tx, c column, batch []old) (rewrapped int, err error) {
	sql := fmt.Sprintf(`UPDATE %[1]s SET %[2]s = $1 WHERE ctid = $2::text::tid AND %[2]s = $3::bytea`, c.Table, c.Column)
	var updates pgx.Batch
	for _, row := range batch {
		envelope, _, err := s.keys.Rewrap(row.Envelope)
		if err != nil {
			return 0, err
		}
		updates.Queue(sql, envelope, row.At, row.Envelope).Exec(func(tag pgconn.CommandTag) error {
			rewrapped += int(tag.RowsAffected())
			return nil
		})
	}
	return rewrapped, tx.SendBatch(ctx, &updates).Close()
}
