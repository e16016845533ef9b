package turn

import (
	"context"
	"iter"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/session"
)

// spareWorkers take the jobs of turns for which this process has no place, so that these turns go
// back to the queue of their workspace and do not stand in the way of others.
const spareWorkers = 8

// claim gives a queued turn to this process, if its workspace may have a place here. Otherwise the
// turn stays queued without a job, until there is one. release gives the place back.
func (s *Service) claim(ctx context.Context, job args) (t session.Turn, l session.Lease, release func(), ours bool, err error) {
	release = func() {}
	err = s.cfg.Sessions.Update(ctx, job.Session, func(tx *session.Tx) (err error) {
		release() // of a transaction that is repeated
		place, ok := s.places.TryAcquire(tx.Session.WorkspaceID)
		if !ok {
			s.turnedAway.Store(true)
			return tx.Unplace(ctx, job.Turn)
		}
		release = place
		t, l, ours, err = tx.Claim(ctx, job.Turn, s.cfg.Lease)
		return err
	})
	if err != nil || !ours {
		release()
	}
	return t, l, release, ours && err == nil, err
}

// sharedModel is a model whose replies take a place each.
type sharedModel struct {
	model.Model
	places    *fair.Places
	workspace uuid.UUID
}

// Generate implements model.Model. It waits until the workspace may have a place.
func (m sharedModel) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		release, err := m.places.Acquire(ctx, m.workspace)
		if err != nil {
			yield(model.Chunk{}, err)
			return
		}
		defer release()
		m.Model.Generate(ctx, req)(yield)
	}
}
