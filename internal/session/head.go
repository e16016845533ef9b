package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
)

// Head is the state of a session that a reader needs before it attaches.
type Head struct {
	Session uuid.UUID
	LastSeq int64 // seq of the newest event; 0 if the session is empty
	// ParentSeq is the end of the history that a fork has from another session; 0 if it is not a fork.
	ParentSeq int64
	GoneSeq   int64 // events up to here cannot be replayed: their turns ended too long ago
	Erased    bool  // nothing can be replayed and no message can be added
	Foreign   bool  // the reader's event is not in this session
	Created   time.Time
	Turn      uuid.UUID // the newest turn; uuid.Nil if the session has none
	State     State     // state of that turn; "" if the session has none
	StartSeq  int64     // seq of that turn's open event
	TurnAt    time.Time // when that turn was created
	Error     string    // code of its error, or ""
	Missed    Missed    // earlier turns that the reader's cursor leaves unread

	// Before are turns that were active when the turn of the reader's open event was lined up
	// behind them. Their rows are among that turn's rows, but are not for the reader.
	Before map[uuid.UUID]bool
}

// Missed are the turns before the newest one that a reader has read in part.
type Missed struct {
	Turns map[uuid.UUID]bool // nil: the reader lacks no row of them
	Since time.Time          // creation of the first of them
}

// Status returns the session's status for clients.
func (h Head) Status() Status { return StatusOf(h.State) }

// Head reads a session of a workspace, or fails with SESSION_NOT_FOUND.
func (s *Store) Head(ctx context.Context, workspace, id uuid.UUID) (Head, error) {
	row, err := s.q.SessionHead(ctx, workspace, id, s.opt.Replay.Seconds())
	if errors.Is(err, pgx.ErrNoRows) {
		return Head{}, NotFound(id)
	}
	if err != nil {
		return Head{}, fmt.Errorf("read session: %w", err)
	}
	h := Head{Session: row.ID, LastSeq: row.LastSeq, GoneSeq: row.GoneSeq, Erased: row.ErasedAt != nil, Created: row.CreatedAt}
	if row.TurnID != nil {
		h.Turn, h.State, h.StartSeq, h.TurnAt = *row.TurnID, State(*row.State), *row.StartSeq, *row.TurnCreatedAt
	}
	if row.ParentSeq != nil {
		h.ParentSeq = *row.ParentSeq
	}
	if row.Error != nil {
		h.Error = *row.Error
	}
	return h, nil
}

// LiveHead is Head for a session that keeps its content. An erased session is SESSION_NOT_FOUND, too.
func (s *Store) LiveHead(ctx context.Context, workspace, id uuid.UUID) (Head, error) {
	h, err := s.Head(ctx, workspace, id)
	if err == nil && h.Erased {
		err = Erased(id)
	}
	return h, err
}

// HeadAt is Head for a reader with a cursor; 0 is the beginning. If the cursor is the open event of
// a turn that is lined up, the reader waits for that turn, and the Head contains it.
func (s *Store) HeadAt(ctx context.Context, workspace, id uuid.UUID, seq int64) (Head, error) {
	own, err := s.q.TurnInLine(ctx, workspace, id, seq) // first: the turn may become the newest meanwhile
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Head{}, fmt.Errorf("look for a turn in line: %w", err)
	}
	h, err := s.Head(ctx, workspace, id)
	if err != nil {
		return Head{}, err
	}
	if own.ID != uuid.Nil {
		h.Turn, h.State, h.StartSeq, h.TurnAt, h.Error = own.ID, LinedUp, seq, own.CreatedAt, ""
	}
	if h.Foreign = seq > h.LastSeq; h.Foreign || seq == 0 {
		return h, nil
	}
	return h, s.locateTurn(ctx, &h, seq)
}

// locateTurn finds the turn of a reader's event. If the event's row is missing although it could
// not have been dropped, the event does not belong to the session: only rows up to GoneSeq may have
// been dropped. If the newest turn is in progress and the event belongs to an earlier one, the rows
// in between are missed.
func (s *Store) locateTurn(ctx context.Context, h *Head, seq int64) error {
	ev, ok, err := s.events.Locate(ctx, h.Session, seq, h.Created)
	if err != nil {
		return err
	}
	h.Foreign = !ok && seq > h.GoneSeq
	if ev.IsOpen {
		if err := s.findEarlierTurns(ctx, h, seq); err != nil {
			return err
		}
	}
	if h.Foreign || ev.Turn == h.Turn || !h.State.IsActive() {
		return nil
	}
	rows, err := s.q.TurnsEarlier(ctx, h.Session, h.StartSeq, seq)
	if err != nil {
		return fmt.Errorf("look for earlier turns: %w", err)
	}
	for _, r := range rows {
		if h.Missed.Turns == nil {
			h.Missed = Missed{Turns: make(map[uuid.UUID]bool, len(rows)), Since: r.CreatedAt}
		}
		h.Missed.Turns[r.ID] = true
		if r.CreatedAt.Before(h.Missed.Since) {
			h.Missed.Since = r.CreatedAt
		}
	}
	return nil
}

// findEarlierTurns finds the turns in Head.Before. seq is that of an open event.
func (s *Store) findEarlierTurns(ctx context.Context, h *Head, seq int64) error {
	ids, err := s.q.TurnsBefore(ctx, h.Session, seq)
	if err != nil {
		return fmt.Errorf("look for turns that were active: %w", err)
	}
	for _, id := range ids {
		if h.Before == nil {
			h.Before = make(map[uuid.UUID]bool, len(ids))
		}
		h.Before[id] = true
	}
	return nil
}

// ByCaller finds a session of a workspace by its caller id; ok is false if there is none.
func (s *Store) ByCaller(ctx context.Context, workspace uuid.UUID, callerID string) (id uuid.UUID, ok bool, err error) {
	id, err = s.q.SessionByCaller(ctx, workspace, callerID)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("find session by caller: %w", err)
	}
	return id, true, nil
}

// NotFound returns the error for a session that does not exist or belongs to another workspace.
func NotFound(id uuid.UUID) *fault.Error {
	return &fault.Error{Code: fault.SessionNotFound, Param: "session_id",
		Message: fmt.Sprintf("Session %s does not exist in this workspace. Check the id; the list of sessions has those that exist.", id)}
}

// Erased returns the error for a session without content.
func Erased(id uuid.UUID) *fault.Error {
	return &fault.Error{Code: fault.SessionNotFound, Param: "session_id",
		Message: fmt.Sprintf("Session %s was erased. Its messages and events are deleted permanently.", id)}
}
