package wiki

import "context"

// IndexStale indexes some stale documents of all workspaces, and returns their number.
func (s *Store) IndexStale(ctx context.Context) (int, error) {
	return s.indexStale(ctx, nil, indexBatch)
}
