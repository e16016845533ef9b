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
	Erased   bool  // nothing can be replayed, and nothing said here any more
	Foreign  bool  // the reader's event is none of this session
	Created  time.Time
	Turn     uuid.UUID // the newest turn; uuid.Nil when there is none
	State    State     // of that turn, "" when there is none
	StartSeq int64     // seq of that turn's open event
	TurnAt   time.Time // when that turn was created
	Error    string    // the code that ended it, or ""
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
	h.Foreign, err = s.foreign(ctx, h, seq)
	return h, err
}

// foreign reports whether an event is none of a session: it is newer than the newest, or
// of the time of which every row is there, and has none. Older rows may have been dropped.
func (s *Store) foreign(ctx context.Context, h Head, seq int64) (bool, error) {
	if seq <= h.GoneSeq || seq > h.LastSeq {
		return seq > h.LastSeq, nil
	}
	here, err := s.q.EventExists(ctx, h.Session, seq, h.Created.Add(-skew))
	if err != nil {
		return false, fmt.Errorf("look for an event: %w", err)
	}
	return !here, nil
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
	return &fault.Error{Code: fault.SessionNotFound, Message: fmt.Sprintf("No session %s in this workspace.", id), Param: "session_id"}
}
