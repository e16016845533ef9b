package wiki

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/text"
)

// nearPaths bounds each kind of the paths that may be meant by an unknown one: two hundred before
// it, as many after it, and as many that contain it.
const nearPaths = 200

// Paths returns paths of documents that may be meant by an unknown one, sorted. Without documents
// there are none.
func (s *Store) Paths(ctx context.Context, workspace uuid.UUID, unknown string) ([]string, error) {
	return s.pathsNear(ctx, db.DocumentsNearParams{WorkspaceID: workspace, Path: unknown, Name: unknown})
}

// Pages is Paths for the names of wiki pages.
func (s *Store) Pages(ctx context.Context, workspace uuid.UUID, unknown string) ([]string, error) {
	pages, err := s.pathsNear(ctx, db.DocumentsNearParams{WorkspaceID: workspace, Prefix: pageFolder, Path: PageKey(unknown), Name: unknown})
	for i, path := range pages {
		pages[i], _ = PageOf(path) // checkPath allows only pages below the folder
	}
	return pages, err
}

func (s *Store) pathsNear(ctx context.Context, p db.DocumentsNearParams) ([]string, error) {
	if !text.IsStorable(p.Name) {
		p.Path, p.Name = "", ""
	}
	p.Most = nearPaths
	paths, err := s.q.DocumentsNear(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list documents near a path: %w", err)
	}
	slices.Sort(paths)
	return paths, nil
}
