package filestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/replan"
)

// Run fetches files and removes expired tickets and abandoned uploads until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.sweepOnce(ctx) })
	if s.opt.Guard != nil && s.opt.Fetchers > 0 {
		g.Go(func() error { return s.fetchAll(ctx) })
	}
	return g.Wait()
}

// sweepEvery is the pause between two sweeps.
const sweepEvery = time.Minute

func (s *Store) sweepOnce(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "remove what is left of files", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep removes expired tickets, and the bytes of uploads from dead processes.
func (s *Store) Sweep(ctx context.Context) error {
	return errors.Join(s.q.FilesPurge(ctx), s.q.UploadsAbandoned(ctx))
}

// Delete removes a file: its bytes are deleted, its addresses no longer work, and lists do not show
// it. The record of its existence stays.
func (s *Store) Delete(ctx context.Context, workspace, id uuid.UUID) error {
	return replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		upload, err := q.FileUpload(ctx, workspace, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return notFound()
		}
		if err != nil {
			return fmt.Errorf("lock file: %w", err)
		}
		if err := q.FileDelete(ctx, workspace, id); err != nil {
			return fmt.Errorf("delete file: %w", err)
		}
		if upload == nil {
			return nil
		}
		if err := q.UploadDrop(ctx, *upload); err != nil {
			return fmt.Errorf("delete the bytes of a file: %w", err)
		}
		return nil
	})
}

// Erase removes the files that a session has produced and those in its messages, unless another
// session's message has them too. tx is the transaction that erases or forgets the session; its
// turns must still exist.
func (s *Store) Erase(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error {
	q := s.q.WithTx(tx)
	rows, err := q.FilesOfSession(ctx, workspace, session)
	if err != nil {
		return fmt.Errorf("find the files of a session: %w", err)
	}
	var ids, uploads []uuid.UUID
	for _, r := range rows {
		ids = append(ids, r.ID)
		if r.UploadID != nil {
			uploads = append(uploads, *r.UploadID)
		}
	}
	if err := q.TurnFilesErase(ctx, workspace, session); err != nil {
		return fmt.Errorf("detach files: %w", err)
	}
	if err := q.FilesErase(ctx, workspace, ids); err != nil {
		return fmt.Errorf("erase files: %w", err)
	}
	if err := q.UploadsDrop(ctx, uploads); err != nil {
		return fmt.Errorf("erase the bytes of files: %w", err)
	}
	return nil
}

// DeleteAll removes the files of a workspace with their bytes.
func (s *Store) DeleteAll(ctx context.Context, workspace uuid.UUID) error {
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		rows, err := q.FilesDeleteAll(ctx, workspace)
		if err != nil {
			return err
		}
		var uploads []uuid.UUID
		for _, id := range rows {
			if id != nil {
				uploads = append(uploads, *id)
			}
		}
		return q.UploadsDrop(ctx, uploads)
	})
	if err != nil {
		return fmt.Errorf("delete the files of a workspace: %w", err)
	}
	return nil
}
