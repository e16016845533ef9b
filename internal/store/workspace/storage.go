package workspace

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// Storage is the stored bytes of a workspace: files that were sent or produced, the folders of
// sessions, and documents. Triggers keep the counts and enforce the quota.
type Storage struct {
	Files     int64 `json:"files"`
	Folders   int64 `json:"folders"`
	Documents int64 `json:"documents"`
}

// Used returns the sum, which the quota limits.
func (s Storage) Used() int64 { return s.Files + s.Folders + s.Documents }

// Storage returns the stored bytes of each workspace; workspaces that never stored anything are
// missing.
func (s *Store) Storage(ctx context.Context) (map[uuid.UUID]Storage, error) {
	rows, err := s.q.StorageAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what workspaces have stored: %w", err)
	}
	all := make(map[uuid.UUID]Storage, len(rows))
	for _, r := range rows {
		all[r.WorkspaceID] = storageOf(r)
	}
	return all, nil
}

func storageOf(r db.WorkspaceStorage) Storage {
	return Storage{Files: r.Files, Folders: r.Folders, Documents: r.Documents}
}
