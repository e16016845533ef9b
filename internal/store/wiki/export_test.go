package wiki

import "context"

// IndexStale indexes some stale documents of all workspaces, and returns their number.
func (s *Store) IndexStale(ctx context.Context) (int, error) {
	return s.indexStale(ctx, nil, indexBatch)
}

// EmbedSome makes the vectors of some documents, and reports whether more may lack them.
func (s *Store) EmbedSome(ctx context.Context) (bool, error) { return s.vectors.embedSome(ctx) }

// ResumeVectors ends the pause after a failure.
func (s *Store) ResumeVectors() { s.vectors.resumes.Store(0) }
