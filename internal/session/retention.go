package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// pastAtOnce is the number of expired sessions that one query looks for.
const pastAtOnce = 100

// Retained lists the data that was removed because it expired.
type Retained struct {
	Partitions []string // names of the partitions of the log
	Sessions   int
}

// ApplyRetention drops the partitions of the log that no reader can request, and removes the
// sessions that were idle for longer than the audit retention, after it has summed their usage. It
// does nothing while another process runs it.
func (s *Store) ApplyRetention(ctx context.Context) (done Retained, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return done, fmt.Errorf("connect to remove what is past its time: %w", err)
	}
	defer conn.Release()
	q := db.New(conn)
	mine, err := q.RetentionLock(ctx)
	if err != nil || !mine {
		return done, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := q.RetentionUnlock(ctx); err != nil {
			conn.Conn().Close(ctx) // frees the lock
		}
	}()
	if done.Partitions, err = s.dropPartitions(ctx); err != nil {
		return done, err
	}
	if err := s.SumUsage(ctx); err != nil && ctx.Err() == nil { // before sessions are removed
		s.log.ErrorContext(ctx, "the usage could not be summed; another try follows in an hour", "err", err)
	}
	if done.Sessions, err = s.forgetSessions(ctx); err != nil {
		return done, err
	}
	if _, err := s.q.SetupsForget(ctx, s.opt.Audit.Seconds()); err != nil {
		return done, fmt.Errorf("forget the setups of turns: %w", err)
	}
	return done, nil
}

// Retention describes which rows of the log are kept, and for how long.
type Retention struct {
	DeltasBefore  time.Time // older text deltas are not needed
	RecordsBefore time.Time // older rows of other kinds are not needed
	Partitions    []eventlog.Partition
	Sessions      int // sessions past the audit retention
}

// Retention reports the state of the log.
func (s *Store) Retention(ctx context.Context) (Retention, error) {
	before, err := s.q.RetentionBefore(ctx, s.opt.Replay.Seconds(), s.opt.Audit.Seconds())
	if err != nil {
		return Retention{}, fmt.Errorf("find out what may be dropped: %w", err)
	}
	partitions, err := s.events.Partitions(ctx)
	if err != nil {
		return Retention{}, err
	}
	past, err := s.q.SessionsPastCount(ctx, s.opt.Audit.Seconds())
	if err != nil {
		return Retention{}, fmt.Errorf("count sessions that are past their time: %w", err)
	}
	return Retention{DeltasBefore: before.Deltas.UTC(), RecordsBefore: before.Records.UTC(), Partitions: partitions, Sessions: int(past)}, nil
}

// applyRetention calls ApplyRetention and logs what was removed.
func (s *Store) applyRetention(ctx context.Context) error {
	done, err := s.ApplyRetention(ctx)
	if pgerr.IsContended(err) {
		s.log.WarnContext(ctx, "a partition of the log could not be dropped; another try follows in an hour", "err", err)
		err = nil
	}
	if len(done.Partitions) > 0 || done.Sessions > 0 {
		s.log.InfoContext(ctx, "removed what is past its time", "partitions", done.Partitions, "sessions", done.Sessions)
	}
	return err
}

// dropPartitions drops the partitions that no reader and no turn needs.
func (s *Store) dropPartitions(ctx context.Context) (dropped []string, err error) {
	before, err := s.q.RetentionBefore(ctx, s.opt.Replay.Seconds(), s.opt.Audit.Seconds())
	if err != nil {
		return nil, fmt.Errorf("find out what may be dropped: %w", err)
	}
	return s.events.DropPartitions(ctx, before.Deltas, before.Records)
}

// forgetSessions removes sessions one by one.
func (s *Store) forgetSessions(ctx context.Context) (n int, err error) {
	for {
		past, err := s.q.SessionsPast(ctx, s.opt.Audit.Seconds(), pastAtOnce)
		if err != nil {
			return n, fmt.Errorf("look for sessions that are past their time: %w", err)
		}
		before := n
		for _, p := range past {
			ok, err := s.forgetSession(ctx, p.WorkspaceID, p.ID)
			if err != nil {
				return n, fmt.Errorf("forget session %s: %w", p.ID, err)
			}
			if ok {
				n++
			}
		}
		if n-before < pastAtOnce {
			return n, nil
		}
	}
}

// forgetSession removes a session with everything that belongs to it; ok is false if the session
// has become active meanwhile.
func (s *Store) forgetSession(ctx context.Context, workspace, id uuid.UUID) (ok bool, err error) {
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := q.RetentionPatience(ctx, int32(time.Second.Milliseconds())); err != nil {
			return err
		}
		n, err := q.SessionPast(ctx, id, s.opt.Audit.Seconds())
		if err != nil || n == 0 {
			return err
		}
		for _, erase := range s.opt.Erase {
			if err := erase(ctx, tx, workspace, id); err != nil {
				return err
			}
		}
		ok = true
		return q.SessionForget(ctx, id)
	})
	return ok && err == nil, err
}
