package workdir

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
)

const (
	// sweepEvery is the pause between two sweeps.
	sweepEvery = time.Hour
	// grace is how long a blob may lack a name: a save sends first and names then. A slower save
	// sends removed blobs again.
	grace = time.Hour
	// dropAtOnce is how many blobs one transaction removes.
	dropAtOnce = 16
)

// Erase removes a session's folder, and the blobs in it unless another session has them too. tx is
// the transaction that erases or forgets the session. A claim to the folder saves nothing
// afterwards.
func (s *Store) Erase(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error {
	q := s.q.WithTx(tx)
	if err := q.WorkdirLock(ctx, workspace, session); err != nil {
		return fmt.Errorf("lock a folder: %w", err)
	}
	blobs, err := q.WorkBlobsOfSession(ctx, workspace, session)
	if err != nil {
		return fmt.Errorf("lock the files of a session: %w", err)
	}
	if err := q.WorkdirDrop(ctx, workspace, session); err != nil {
		return fmt.Errorf("erase a folder: %w", err)
	}
	if _, err := q.WorkBlobsDrop(ctx, blobs); err != nil {
		return fmt.Errorf("erase the files of a session: %w", err)
	}
	return nil
}

// Run removes unnamed blobs every hour until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := s.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "remove what no folder has any more", "err", err)
		}
		if n > 0 {
			s.log.InfoContext(ctx, "removed what no folder has any more", "blobs", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep removes blobs that have had no name for an hour.
func (s *Store) Sweep(ctx context.Context) (dropped int, err error) {
	for {
		n, more, err := s.sweepBlobs(ctx)
		dropped += n
		if err != nil || !more {
			return dropped, err
		}
	}
}

// sweepBlobs removes a few of them. A save locks the blobs that it names and detects missing ones:
// either the sweep sees the name, or the save sends the blob again.
func (s *Store) sweepBlobs(ctx context.Context) (dropped int, more bool, err error) {
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := q.RetentionPatience(ctx, lockMS); err != nil {
			return fmt.Errorf("begin to remove blobs: %w", err)
		}
		ids, err := q.WorkBlobsLoose(ctx, grace.Seconds(), dropAtOnce)
		if err != nil {
			return fmt.Errorf("look for loose blobs: %w", err)
		}
		more = len(ids) == dropAtOnce
		n, err := q.WorkBlobsDrop(ctx, ids)
		if err != nil {
			return fmt.Errorf("remove blobs: %w", err)
		}
		dropped = int(n)
		if err := q.WorkBlobsKeep(ctx, ids); err != nil {
			return fmt.Errorf("keep blobs that have names: %w", err)
		}
		return nil
	})
	return dropped, more, err
}
