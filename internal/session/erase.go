package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/origin"
)

// Erasure is the result of Erase.
type Erasure struct {
	At       time.Time
	Already  bool // it was erased before
	Canceled int  // turns that had not ended
}

// EraseContent removes a session's content: messages, tool calls, questions, answers, files and the
// caller. Turns that have not ended are canceled. Ids, kinds, times, counts and the eraser's name
// stay.
func (s *Store) EraseContent(ctx context.Context, id uuid.UUID, by string) (e Erasure, err error) {
	err = s.Update(ctx, id, func(tx *Tx) error {
		if tx.row.ErasedAt != nil {
			e = Erasure{At: *tx.row.ErasedAt, Already: true}
			return nil
		}
		if err := tx.q.RetentionPatience(ctx, int32(eraseWait.Milliseconds())); err != nil {
			return fmt.Errorf("erase session: %w", err)
		}
		upto := tx.Head() // the end of a canceled turn holds no content
		if e.Canceled, err = tx.cancelAll(ctx); err != nil {
			return err
		}
		e.At, err = tx.eraseRows(ctx, upto, by)
		return err
	})
	return e, err
}

// EraseAll erases every session of a workspace and removes its rows, one session in a transaction.
// In a workspace that is in use it erases the sessions that exist now; call it when its keys are
// revoked.
func (s *Store) EraseAll(ctx context.Context, workspace uuid.UUID, by string) (sessions, canceled int, err error) {
	for {
		ids, err := s.q.SessionsOf(ctx, workspace)
		if err != nil || len(ids) == 0 {
			return sessions, canceled, err
		}
		for _, id := range ids {
			e, err := s.EraseContent(ctx, id, by)
			if err != nil {
				return sessions, canceled, err
			}
			if err := s.q.SessionJobsDelete(ctx, id); err != nil {
				return sessions, canceled, fmt.Errorf("remove the jobs of an erased session: %w", err)
			}
			if err := s.q.SessionForget(ctx, id); err != nil {
				return sessions, canceled, fmt.Errorf("remove an erased session: %w", err)
			}
			sessions, canceled = sessions+1, canceled+e.Canceled
		}
	}
}

// eraseWait is how long an erasure waits for a lock.
const eraseWait = 10 * time.Second

// cancelAll ends the turns that have not ended. It sends no callbacks: their content is about to be
// erased.
func (tx *Tx) cancelAll(ctx context.Context) (n int, err error) {
	f := event.Canceled.Failure("The session was erased.")
	for {
		t, ok, err := tx.ActiveTurn(ctx)
		if err != nil {
			return n, err
		}
		if !ok {
			if _, ok, err = tx.Next(ctx); err != nil || !ok {
				return n, err
			}
			continue
		}
		c, err := tx.ReadClosing(ctx, t)
		if err != nil {
			return n, err
		}
		ok, err = tx.EndTurn(ctx, c, Ending{Trigger: Cancel, Failure: &f, Halted: State(t.State) != Running, By: origin.JSON(ctx)})
		if err == nil && !ok {
			err = fmt.Errorf("turn %s cannot be canceled", t.ID)
		}
		if err != nil {
			return n, err
		}
		n++
	}
}

// eraseRows removes the content of the rows up to an event.
func (tx *Tx) eraseRows(ctx context.Context, upto int64, by string) (at time.Time, err error) {
	id, workspace := tx.row.ID, tx.row.WorkspaceID
	if err := tx.queueChanges(ctx); err != nil { // first: SessionErase removes the stored content
		return at, err
	}
	for _, erase := range tx.s.opt.Erase {
		if err := erase(ctx, tx.Tx, workspace, id); err != nil {
			return at, err
		}
	}
	if err := tx.s.events.Erase(ctx, tx.Tx, id, upto); err != nil {
		return at, err
	}
	if err := tx.q.UsageLock(ctx); err != nil {
		return at, fmt.Errorf("wait for the sums of usage: %w", err)
	}
	if err := tx.q.UsageErase(ctx, workspace, id); err != nil {
		return at, fmt.Errorf("erase the usage of users: %w", err)
	}
	for _, erase := range []func(context.Context, uuid.UUID) error{
		tx.q.MessagesErase, tx.q.ApprovalsErase, tx.q.ToolRepliesErase, tx.q.IdempotencyErase, tx.q.TurnsErase,
	} {
		if err := erase(ctx, id); err != nil {
			return at, fmt.Errorf("erase what belongs to turns: %w", err)
		}
	}
	if err := tx.q.AnswersErase(ctx, workspace, id); err != nil {
		return at, fmt.Errorf("erase answers: %w", err)
	}
	if at, err = tx.q.SessionErase(ctx, id); err != nil {
		return at, fmt.Errorf("erase session: %w", err)
	}
	if err := tx.q.ErasureInsert(ctx, id, workspace, by); err != nil {
		return at, fmt.Errorf("note the erasure: %w", err)
	}
	return at, nil
}
