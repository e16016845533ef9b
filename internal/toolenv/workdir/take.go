package workdir

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Lease reuses a folder under a newer claim, if nothing has changed it since it was restored or
// last saved. ok is false if another process has saved it meanwhile: its content is then stale,
// and Restore fills a new folder. It fails with ErrFenced as Restore
// does.
func (f *Folder) Lease(ctx context.Context, c Claim) (ok bool, err error) {
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

// Bytes returns the total size of the folder's files, as they were last saved.
func (f *Folder) Bytes() int64 { return bytesOf(f.saved) }
