package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// indexMissing is an index of a partition that is not there or was not completed, newest partition
// first. events_partitions makes those of new partitions.
const indexMissing = `SELECT i.name, p.name, i.definition FROM events_partition_ends() p CROSS JOIN LATERAL events_indexes(p.name) i
	WHERE NOT p.delta AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indexrelid = to_regclass(i.name) AND x.indisvalid)
	ORDER BY p.ends DESC, i.name LIMIT 1`

// indexPartition makes an index of a partition that is older than the index, and returns its name,
// or "" if none is missing. Writers are not blocked. It is not part of a file because only a client
// can run CREATE INDEX CONCURRENTLY for tables whose names a file does not know.
func (m *migrator) indexPartition(ctx context.Context) (made string, err error) {
	err = m.onConn(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var index, table, definition string
		err := conn.QueryRow(ctx, indexMissing).Scan(&index, &table, &definition)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for indexes of the log: %w", err)
		}
		name, of := pgx.Identifier{index}.Sanitize(), pgx.Identifier{table}.Sanitize()
		for _, sql := range []string{
			"SET lock_timeout = '10min'", // it waits for older transactions, and blocks none
			"DROP INDEX CONCURRENTLY IF EXISTS " + name,
			"CREATE INDEX CONCURRENTLY " + name + " ON " + of + " " + definition,
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("index %s: %w", table, err)
			}
		}
		made = "index " + index
		return nil
	})
	return made, err
}
