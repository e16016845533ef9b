package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/parley-server/parley/internal/session"
)

const (
	reapEvery = 250 * time.Millisecond
	// doubt is how long a node's lock must be missing: connections that were cut are
	// back sooner.
	doubt = 700 * time.Millisecond
)

// reap looks for turns whose worker is dead and puts them back into the queue. Every
// replica does; the session's lock and its epoch decide who was first.
func (s *Service) reap(ctx context.Context) error {
	missing := make(map[int32]time.Time)
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reapEvery):
		}
		err := s.reclaim(ctx, missing)
		if err == nil && round%4 == 0 {
			err = errors.Join(s.rescue(ctx), s.place(ctx, nil), s.redeliverLost(ctx))
		}
		if err == nil && round%int(overdueEvery/reapEvery) == 0 {
			err = s.expireOverdue(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "look for dead workers", "err", err)
		}
	}
}

// reclaim takes running turns from nodes that are gone, and from workers whose
// lease is over: frozen, or cut off from the database. missing remembers since when
// a node is not seen.
func (s *Service) reclaim(ctx context.Context, missing map[int32]time.Time) error {
	turns, err := s.q.TurnsRunning(ctx)
	if err != nil || len(turns) == 0 {
		clear(missing)
		return err
	}
	alive, err := s.q.NodesAlive(ctx)
	if err != nil {
		return err
	}
	seen := make(map[int32]bool)
	for _, t := range turns {
		seen[t.Node] = true
		since, doubted := missing[t.Node]
		switch {
		case slices.Contains(alive, t.Node):
			delete(missing, t.Node)
		case !doubted:
			missing[t.Node] = time.Now()
		}
		dead := !slices.Contains(alive, t.Node) && doubted && time.Since(since) > doubt
		if !dead && !t.Expired {
			continue
		}
		s.log.InfoContext(ctx, "taking a turn over", "session", t.SessionID, "turn", t.ID, "node", t.Node, "dead", dead)
		if err := s.release(ctx, session.Lease{Session: t.SessionID, Turn: t.ID, Epoch: t.Epoch}); err != nil {
			return err
		}
	}
	for node := range missing {
		if !seen[node] {
			delete(missing, node)
		}
	}
	return nil
}

// rescue gives a new job to queued turns whose job is gone, or was fetched by a
// node that died before it claimed the turn.
func (s *Service) rescue(ctx context.Context) error {
	turns, err := s.q.TurnsQueued(ctx)
	if err != nil || len(turns) == 0 {
		return err
	}
	alive, err := s.q.NodesAlive(ctx)
	if err != nil {
		return err
	}
	ids := make([]int64, len(turns))
	for i, t := range turns {
		ids[i] = t.JobID
	}
	jobs, err := s.jobs(ctx, ids)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if working(jobs[t.JobID], alive) {
			continue
		}
		s.log.InfoContext(ctx, "queueing a stranded turn again", "session", t.SessionID, "turn", t.ID)
		if err := s.requeue(ctx, t.SessionID, t.ID, &t.JobID); err != nil {
			return err
		}
	}
	return nil
}

// jobs reads River's jobs by their ids; those that are gone are missing.
func (s *Service) jobs(ctx context.Context, ids []int64) (map[int64]*rivertype.JobRow, error) {
	list, err := s.river.JobList(ctx, river.NewJobListParams().IDs(ids...).First(len(ids)))
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	jobs := make(map[int64]*rivertype.JobRow, len(list.Jobs))
	for _, j := range list.Jobs {
		jobs[j.ID] = j
	}
	return jobs, nil
}

// place gives jobs to the turns that waited for others of their workspace to end:
// of one workspace, or, for nil, of all.
func (s *Service) place(ctx context.Context, workspace *uuid.UUID) error {
	turns, err := s.q.TurnsPlaceable(ctx, workspace)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if err := s.requeue(ctx, t.SessionID, t.ID, nil); err != nil {
			return err
		}
	}
	return nil
}

// requeue gives a queued turn a new job in the place of the one it had, unless
// somebody else did so first.
func (s *Service) requeue(ctx context.Context, id, turn uuid.UUID, job *int64) error {
	return s.cfg.Sessions.Update(ctx, id, func(tx *session.Tx) error {
		t, err := tx.Turn(ctx)
		if err != nil || t.ID != turn || session.State(t.State) != session.Queued || !same(t.JobID, job) {
			return err
		}
		return s.enqueue(ctx, tx, turn)
	})
}

func same(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// working reports whether a job will still run its turn.
func working(j *rivertype.JobRow, alive []int32) bool {
	if j == nil {
		return false
	}
	switch j.State {
	case rivertype.JobStateRunning:
		if len(j.AttemptedBy) == 0 {
			return true
		}
		node, err := strconv.ParseInt(j.AttemptedBy[len(j.AttemptedBy)-1], 10, 32)
		return err != nil || slices.Contains(alive, int32(node))
	case rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
		return false
	}
	return true
}
