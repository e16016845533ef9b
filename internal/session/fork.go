package session

import (
	"context"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// MaxForks is how many forks may lead from a session that is not a fork to a session.
const MaxForks = 16

// Origin is the session whose history a fork continues.
type Origin struct {
	SessionID uuid.UUID `json:"session_id"`
	Seq       int64     `json:"seq"`              // end of the last turn that belongs to the fork
	Erased    bool      `json:"erased,omitempty"` // that session was erased, or is past its retention
}

// Fork makes a session that continues the history of another one up to an event; nil is its newest
// event. The history ends with the turns that had ended by then. The fork has no copy of it: an
// erasure of the other session also removes it from the fork. by is the API key.
//
// A session that does not exist or is erased is SESSION_NOT_FOUND. An event after the newest one, or
// before the end of the first turn, is INVALID_CURSOR.
func (s *Store) Fork(ctx context.Context, workspace, id uuid.UUID, seq *int64, by string) (Summary, error) {
	head, err := s.LiveHead(ctx, workspace, id)
	if err != nil {
		return Summary{}, err
	}
	upto := int64(math.MaxInt64)
	if seq != nil {
		if err := head.checkPosition("seq", *seq); err != nil {
			return Summary{}, err
		}
		upto = *seq
	}
	at, err := s.q.SessionForkAt(ctx, upto, id)
	if err != nil {
		return Summary{}, fmt.Errorf("find the end of a turn: %w", err)
	}
	if at.Seq == 0 {
		message := "No turn of this session has ended. Fork it after the done of a turn."
		if seq != nil {
			message = fmt.Sprintf("No turn of this session had ended at event %d. Use the id of a done event or a later one.", *seq)
		}
		return Summary{}, &fault.Error{Code: fault.InvalidCursor, Param: "seq", Message: message}
	}
	if at.Depth >= MaxForks {
		return Summary{}, fault.New(fault.ObjectConflict,
			"Session %s is the last of %d forks of forks, which is the limit. Fork an earlier one.", id, at.Depth)
	}
	fork := uuid.Must(uuid.NewV7())
	n, err := s.q.SessionFork(ctx, db.SessionForkParams{ID: fork, WorkspaceID: workspace, ParentID: id, Seq: at.Seq, ForkedBy: nilIfEmpty(by)})
	if err != nil {
		return Summary{}, fmt.Errorf("fork session: %w", err)
	}
	if n == 0 { // it was erased meanwhile
		return Summary{}, Erased(id)
	}
	return s.Summary(ctx, workspace, fork)
}

// checkPosition checks that a parameter is not after the newest event of a session's history.
func (h Head) checkPosition(param string, seq int64) error {
	if newest := max(h.LastSeq, h.ParentSeq); seq > newest {
		return &fault.Error{Code: fault.InvalidCursor, Param: param,
			Message: fmt.Sprintf("Event %d is after the newest event of session %s, which is %d.", seq, h.Session, newest)}
	}
	return nil
}
