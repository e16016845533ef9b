package workdir

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Entry is a name in a folder.
type Entry struct {
	Path       string `json:"path"` // bytes of any kind: often, but not always, UTF-8
	Kind       Kind   `json:"kind"`
	Executable bool   `json:"executable"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256,omitempty"` // hexadecimal, of a file
	Target     string `json:"target,omitempty"` // target of a symlink
}

// List returns the contents of a session's folder as they were last saved, by path.
func (s *Store) List(ctx context.Context, workspace, session uuid.UUID) ([]Entry, error) {
	rows, err := s.q.WorkFiles(ctx, workspace, session, nil)
	if err != nil {
		return nil, fmt.Errorf("list a folder: %w", err)
	}
	list := make([]Entry, len(rows))
	for i, r := range rows {
		list[i] = entryOf(r)
	}
	return list, nil
}

func entryOf(r db.WorkFilesRow) Entry {
	return Entry{Path: string(r.Path), Kind: Kind(r.Kind), Executable: r.Executable, Size: r.Size, SHA256: hex.EncodeToString(r.Sha256),
		Target: string(r.Target)}
}

// Content is a readable file.
type Content struct {
	Entry
	s *Store
	k known
}

// Open opens a file in a session's folder as it was last saved, or fails with FILE_NOT_FOUND.
func (s *Store) Open(ctx context.Context, workspace, session uuid.UUID, path string) (Content, error) {
	rows, err := s.q.WorkFiles(ctx, workspace, session, []byte(path))
	if err != nil {
		return Content{}, fmt.Errorf("find a file of a folder: %w", err)
	}
	if len(rows) == 0 || Kind(rows[0].Kind) != File {
		return Content{}, fault.New(fault.FileNotFound, "The session has no file %s.", quotePath(path))
	}
	return Content{entryOf(rows[0]), s, knownOf(rows[0])}, nil
}

// Copy writes the file to w, one chunk at a time. If it fails, the written data is not the file.
func (c Content) Copy(ctx context.Context, w io.Writer) error {
	for chunk, err := range c.s.readChunks(ctx, c.k) {
		if err != nil {
			return err
		}
		if _, err := w.Write(chunk); err != nil {
			return fmt.Errorf("write a file: %w", err)
		}
	}
	return nil
}
