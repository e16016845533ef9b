package workdir

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// Kind is what a path names.
type Kind string

const (
	File    Kind = "file"
	Dir     Kind = "dir"
	Symlink Kind = "symlink"
)

// sum is the SHA-256 of a file's content.
type sum [sha256.Size]byte

// row is what is kept of a path.
type row struct {
	kind       Kind
	executable bool
	size       int64
	sum        sum    // of a file
	target     string // of a symlink
}

// known is a row, and how its file looked on disk when it was equal to it.
type known struct {
	row
	stamp stamp
	blob  uuid.UUID // where the bytes are, as far as Restore needs it
}

// readRows reads what a folder has.
func (s *Store) readRows(ctx context.Context, workspace, session uuid.UUID) (map[string]known, error) {
	list, err := s.q.WorkFiles(ctx, workspace, session, nil)
	if err != nil {
		return nil, fmt.Errorf("read the list of a folder: %w", err)
	}
	all := make(map[string]known, len(list))
	for _, r := range list {
		all[string(r.Path)] = knownOf(r)
	}
	return all, nil
}

func knownOf(r db.WorkFilesRow) known {
	k := known{row: row{kind: Kind(r.Kind), executable: r.Executable, size: r.Size, target: string(r.Target)}}
	copy(k.sum[:], r.Sha256)
	if r.BlobID != nil {
		k.blob = *r.BlobID
	}
	return k
}

// sumsOf lists hashes as queries take them.
func sumsOf(sums []sum) [][]byte {
	list := make([][]byte, len(sums))
	for i := range sums {
		list[i] = sums[i][:]
	}
	return list
}
