package wiki

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/text"
)

// Folder is a page of a folder, with the number and the bytes of the documents in the folder and
// below it.
type Folder struct {
	Documents int
	Size      int64
	Entries   []FolderEntry
}

// FolderEntry is a document of a folder, or a folder in it with what is below it.
type FolderEntry struct {
	Name      string
	Document  bool
	Title     string // of a document, like its version
	Version   int
	Documents int
	Size      int64
	UpdatedAt time.Time
}

// FolderPage returns at most this many entries of a folder after another entry, folders first. path
// is empty or ends with a slash. The totals of a page without entries are zero.
func (s *Store) FolderPage(ctx context.Context, workspace uuid.UUID, path string, after FolderEntry, most int) (f Folder, err error) {
	if !text.IsStorable(path) || !text.IsStorable(after.Name) {
		return f, nil
	}
	rows, err := s.q.DocumentsFolder(ctx, db.DocumentsFolderParams{
		WorkspaceID: workspace, Folder: path, AfterDocument: after.Document, After: after.Name, Most: int32(most),
	})
	if err != nil {
		return f, fmt.Errorf("list a folder: %w", err)
	}
	for _, r := range rows {
		f.Documents, f.Size = int(r.AllDocuments), r.AllSize
		f.Entries = append(f.Entries, FolderEntry{r.Name, r.Document, r.Title, int(r.Version), int(r.Documents), r.Size, r.UpdatedAt})
	}
	return f, nil
}
