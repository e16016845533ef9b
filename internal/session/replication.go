package session

import (
	"context"
	"fmt"
)

// AwaitReplication returns when the synchronous standbys, if there are any, have every change that is
// visible now. Call it before a change of another transaction counts as made. A client that gives a
// commit up cancels it, and a commit that is canceled while it waits for a standby becomes visible
// without being there: a failover would lose it.
//
// The message in the write-ahead log has no content. It makes this transaction wait like any other.
func (s *Store) AwaitReplication(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, `SELECT pg_logical_emit_message(true, 'parley', '')`); err != nil {
		return fmt.Errorf("wait for the standbys: %w", err)
	}
	return nil
}
