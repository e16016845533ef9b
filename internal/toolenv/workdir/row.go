package workdir

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// Kind is the kind of a path.
type Kind string

const (
	File    Kind = "file"
	Dir     Kind = "dir"
	Symlink Kind = "symlink"
)

// sum is the SHA-256 of a file's content.
type sum [sha256.Size]byte

// row is the stored data of a path.
type row struct {
	kind       Kind
	executable bool
	size       int64
	sum        sum    // sum of a file
	target     string // target of a symlink
}

// known is a row, and the file's stamp on disk when it was equal to the row.
type known struct {
	row
	stamp stamp
	blob  uuid.UUID // place of the bytes, as far as Restore needs it
}

// readRows reads the rows of a folder.
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

// sumsOf converts hashes for queries.
func sumsOf(sums []sum) [][]byte {
	list := make([][]byte, len(sums))
	for i := range sums {
		list[i] = sums[i][:]
	}
	return list
}
