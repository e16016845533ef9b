package workdir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

const (
	// rowsAtOnce is the number of names that one statement writes.
	rowsAtOnce = 1000
	// lockMS is how long a save waits for a lock: an erasure can take long.
	lockMS = 10_000
)

// change is the effect of a save on the names of a folder.
type change struct {
	gone  [][]byte // paths that no longer exist, or will be rewritten
	paths []string // new or changed paths
	named []sum    // their contents
	loose []sum    // contents that lose a name
	count int
}

// compareRows compares the saved rows with the found ones.
func compareRows(saved, found map[string]known) change {
	var c change
	named, loose := map[sum]bool{}, map[sum]bool{}
	for path, was := range saved {
		is, ok := found[path]
		if ok && is.row == was.row {
			continue
		}
		c.gone = append(c.gone, []byte(path))
		if was.kind == File {
			loose[was.sum] = true
		}
		if !ok {
			c.count++
		}
	}
	for path, is := range found {
		if was, ok := saved[path]; ok && is.row == was.row {
			continue
		}
		c.paths = append(c.paths, path)
		if is.kind == File {
			named[is.sum] = true
			delete(loose, is.sum)
		}
	}
	c.count += len(c.paths)
	slices.Sort(c.paths)
	c.named, c.loose = slices.Collect(maps.Keys(named)), slices.Collect(maps.Keys(loose))
	return c
}

// commitChanges stores the found rows as the folder in the database, in one transaction. If it
// fails with errMissing, missing blobs were removed after they were sent.
func (f *Folder) commitChanges(ctx context.Context, found map[string]known) (changed int, missing map[sum]bool, err error) {
	c := compareRows(f.saved, found)
	err = replan.InTx(ctx, f.s.pool, func(tx pgx.Tx) error {
		q := f.s.q.WithTx(tx)
		if err := q.RetentionPatience(ctx, lockMS); err != nil {
			return fmt.Errorf("begin to save a folder: %w", err)
		}
		if err := f.lockFolder(ctx, q, found); err != nil {
			return err
		}
		if missing, err = f.lockBlobs(ctx, q, c); err != nil {
			return err
		}
		if len(missing) > 0 {
			return errMissing
		}
		return f.writeRows(ctx, q, c, found)
	})
	if why, ok := pgerr.IsQuotaExceeded(err); ok {
		return 0, nil, storageFull(why)
	}
	if err == nil {
		f.version++
	}
	return c.count, missing, err
}

// lockFolder locks the folder, if the claim is still valid and the folder has not changed.
func (f *Folder) lockFolder(ctx context.Context, q *db.Queries, found map[string]known) error {
	version, err := q.WorkdirSave(ctx, db.WorkdirSaveParams{
		Files: int32(len(found)), Bytes: bytesOf(found), WorkspaceID: f.claim.Workspace, SessionID: f.claim.Session, Epoch: f.claim.Epoch,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrFenced
	}
	if err != nil {
		return fmt.Errorf("lock a folder: %w", err)
	}
	if version != f.version+1 {
		return errStale
	}
	return nil
}

// lockBlobs protects the blobs that get or lose names from removal, and from other transactions
// that name them, until the end of the transaction.
func (f *Folder) lockBlobs(ctx context.Context, q *db.Queries, c change) (missing map[sum]bool, err error) {
	locked, err := q.WorkBlobsLock(ctx, f.claim.Workspace, sumsOf(slices.Concat(c.named, c.loose)))
	if err != nil {
		return nil, fmt.Errorf("lock blobs: %w", err)
	}
	missing = make(map[sum]bool)
	for _, name := range c.named {
		missing[name] = true
	}
	for _, b := range locked {
		delete(missing, sum(b))
	}
	return missing, nil
}

func (f *Folder) writeRows(ctx context.Context, q *db.Queries, c change, found map[string]known) error {
	workspace, session := f.claim.Workspace, f.claim.Session
	for paths := range slices.Chunk(c.gone, rowsAtOnce) {
		if err := q.WorkFilesDrop(ctx, workspace, session, paths); err != nil {
			return fmt.Errorf("remove names: %w", err)
		}
	}
	for paths := range slices.Chunk(c.paths, rowsAtOnce) {
		put := db.WorkFilesPutParams{SessionID: session, WorkspaceID: workspace}
		for _, path := range paths {
			k := found[path]
			content := []byte{} // none
			if k.kind == File {
				content = k.sum[:]
			}
			put.Paths, put.Kinds = append(put.Paths, []byte(path)), append(put.Kinds, string(k.kind))
			put.Executables, put.Sizes = append(put.Executables, k.executable), append(put.Sizes, k.size)
			put.Sums, put.Targets = append(put.Sums, content), append(put.Targets, []byte(k.target))
		}
		if err := q.WorkFilesPut(ctx, put); err != nil {
			return fmt.Errorf("add names: %w", err)
		}
	}
	if err := q.WorkBlobsNamed(ctx, workspace, sumsOf(c.named)); err != nil {
		return fmt.Errorf("note that blobs have names: %w", err)
	}
	if err := q.WorkBlobsLoosen(ctx, workspace, sumsOf(c.loose)); err != nil {
		return fmt.Errorf("note that blobs have fewer names: %w", err)
	}
	return nil
}
