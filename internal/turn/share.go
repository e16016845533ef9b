package turn

import (
	"context"
	"iter"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/model"
)

// spareWorkers fetch the jobs of turns for which this process has no place, so that these turns
// return to the queue of their workspace and do not block others.
const spareWorkers = 8

// jobsAtOnce returns how many jobs of turns a process works on. More places than River's limit
// still help: a workspace gets only a share of them.
func jobsAtOnce(workers int) int { return min(workers+spareWorkers, river.QueueNumWorkersMax) }

// sharedModel is the model of an attempt. It takes a place for each reply.
type sharedModel struct {
	model.Model
	places    *fair.Places
	workspace uuid.UUID
	attempt   *attempt
	metrics   counts
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
		if err := m.attempt.beginModelCall(); err != nil {
			yield(model.Chunk{}, err)
			return
		}
		call := m.metrics.beginModelCall(m.Name())
		ctx, traced := m.startChat(ctx, req)
		defer func() { traced.end(call.end(ctx)) }()
		for chunk, err := range m.Model.Generate(ctx, req) {
			call.note(err)
			traced.note(chunk, err)
			if err != nil {
				m.attempt.failModelCall()
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// CancelResponse implements model.Canceler.
func (m sharedModel) CancelResponse(ctx context.Context, id string) error {
	if c, ok := m.Model.(model.Canceler); ok {
		return c.CancelResponse(ctx, id)
	}
	return nil
}
