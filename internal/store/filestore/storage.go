package filestore

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
)

// fitsStorage fails with FILE_TOO_LARGE if a file of this size exceeds the storage quota of the
// workspace. It avoids receiving bytes that cannot be stored; the transaction that stores them
// decides.
func (s *Store) fitsStorage(ctx context.Context, workspace uuid.UUID, size int64) error {
	ctx, cancel := shortContext(ctx)
	defer cancel()
	now, err := s.q.StorageOf(ctx, workspace)
	if err != nil {
		return fmt.Errorf("read what a workspace has stored: %w", err)
	}
	used := now.Files + now.Folders + now.Documents
	if now.Quota == 0 || used+size <= now.Quota {
		return nil
	}
	return storageFull(
		fmt.Sprintf("The workspace has %d bytes in files, folders and documents, and the file has %d more. Its storage quota is %d bytes.",
			used, size, now.Quota))
}

// storageError returns the fault of a transaction that would exceed the storage quota, nil for
// other errors.
func storageError(err error) error {
	if why, ok := pgerr.IsQuotaExceeded(err); ok {
		return storageFull(why)
	}
	return nil
}

// storageFull is 413 and not 429: a client that sends the same file again later fails again, unless
// something is deleted.
func storageFull(why string) error {
	return fault.New(fault.FileTooLarge, "%s Delete files or erase sessions, or ask an administrator for a larger quota.", why)
}
