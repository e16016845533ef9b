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

// Head is what a reader needs to know before it attaches to a session.
type Head struct {
	Session  uuid.UUID
	LastSeq  int64 // seq of the newest event; 0 when there is none
	GoneSeq  int64 // events up to here cannot be replayed: their turns ended too long ago
	Erased   bool  // nothing can be replayed and no message can be added
	Foreign  bool  // the reader's event is not of this session
	Created  time.Time
	Turn     uuid.UUID // the newest turn; uuid.Nil when there is none
	State    State     // of that turn, "" when there is none
	StartSeq int64     // seq of that turn's open event
	TurnAt   time.Time // when that turn was created
	Error    string    // the code that ended it, or ""
	Missed   Missed    // what the reader's cursor, in an earlier turn, leaves to be read

	// Before are turns that were active when the turn of the reader's open event was lined up
	// behind them. Their rows stand among its own, and the reader has no part in them.
	Before map[uuid.UUID]bool
}

// Missed are the turns before the newest whose rows a reader has in part.
type Missed struct {
	Turns map[uuid.UUID]bool // nil: the reader lacks no row of them
	Since time.Time          // when the first of them was created
}

// Status is how the session looks from outside.
func (h Head) Status() Status { return StatusOf(h.State) }

// Head looks a workspace's session up, or fails with SESSION_NOT_FOUND.
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
	if row.Error != nil {
		h.Error = *row.Error
	}
	return h, nil
}

// HeadAt is Head for a reader who stands at an event; 0 is the beginning. Where that is the
// open event of a turn in line, the reader waits for that turn: it is the one in the Head.
func (s *Store) HeadAt(ctx context.Context, workspace, id uuid.UUID, seq int64) (Head, error) {
	own, err := s.q.TurnInLine(ctx, workspace, id, seq) // first: it may become the newest meanwhile
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
	return h, s.locate(ctx, &h, seq)
}

// locate finds the turn of a reader's event. The event is not the session's where its row would
// have to be there and is not: rows up to GoneSeq may have been dropped. If the newest turn is in
// progress and the event is of an earlier one, the rows in between are missed.
func (s *Store) locate(ctx context.Context, h *Head, seq int64) error {
	ev, ok, err := s.events.Locate(ctx, h.Session, seq, h.Created)
	if err != nil {
		return err
	}
	h.Foreign = !ok && seq > h.GoneSeq
	if ev.IsOpen {
		if err := s.before(ctx, h, seq); err != nil {
			return err
		}
	}
	if h.Foreign || ev.Turn == h.Turn || !h.State.Active() {
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

// before finds the turns in Head.Before. seq is that of an open event.
func (s *Store) before(ctx context.Context, h *Head, seq int64) error {
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

// ByCaller finds a workspace's session by what its caller calls it; ok is false where there is
// none.
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

// NotFound is the answer for a session that does not exist, or not for this workspace.
func NotFound(id uuid.UUID) *fault.Error {
	return &fault.Error{Code: fault.SessionNotFound, Param: "session_id",
		Message: fmt.Sprintf("There is no session %s in this workspace. Check the id; the list of sessions has those that exist.", id)}
}
