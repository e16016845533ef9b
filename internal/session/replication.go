package session

import (
	"context"

	"github.com/parley-server/parley/internal/eventlog"
)

// AwaitReplication returns when the synchronous standbys, if there are any, have every change that is
// visible now. Call it before a change of another transaction counts as made. A client that gives a
// commit up cancels it, and a commit that is canceled while it waits for a standby becomes visible
// without being there: a failover would lose it.
func (s *Store) AwaitReplication(ctx context.Context) error {
	return eventlog.AwaitStandbys(ctx, s.pool)
}
