package workdir

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Take goes on, under a newer claim, with a folder that nothing has changed since it was
// restored or last saved. ok is false where another process has saved it meanwhile: then
// it is worth nothing, and Restore fills a new one. It fails with ErrFenced as Restore
// does.
func (f *Folder) Take(ctx context.Context, c Claim) (ok bool, err error) {
	version, err := f.s.q.WorkdirTake(ctx, c.Epoch, c.Workspace, c.Session)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, ErrFenced
	}
	if err != nil {
		return false, fmt.Errorf("take a folder: %w", err)
	}
	f.claim = c
	return version == f.version, nil
}

// Bytes is what the files of the folder have together, as they were last saved.
func (f *Folder) Bytes() int64 { return bytesOf(f.saved) }
