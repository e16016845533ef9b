package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
)

// Feedback is the newest opinion of an answer.
type Feedback struct {
	TurnID uuid.UUID    `json:"turn_id"`
	Rating event.Rating `json:"rating"`
	Note   string       `json:"note,omitempty"`
	Key    string       `json:"key_id"`
	At     time.Time    `json:"at"`
}

// Rate records an opinion of an answer in the session's log, after the end of its turn. A turn that
// has not ended is TURN_IN_PROGRESS.
func (s *Store) Rate(ctx context.Context, workspace, id, turn uuid.UUID, f event.Feedback) (Feedback, error) {
	var evs []event.Event
	err := s.Update(ctx, id, func(tx *Tx) error {
		switch {
		case tx.WorkspaceID() != workspace:
			return NotFound(id)
		case tx.row.ErasedAt != nil:
			return Erased(id)
		}
		t, err := tx.TurnByID(ctx, turn)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && t.SessionID != id {
			return &fault.Error{Code: fault.SessionNotFound, Param: "turn_id", Message: fmt.Sprintf("There is no turn %s in this session.", turn)}
		}
		if err != nil {
			return err
		}
		if t.EndSeq == nil {
			return &fault.Error{Code: fault.TurnInProgress, Message: "This answer has not ended. Rate it after its done event.",
				Detail: fault.Detail{Turn: &ActiveTurn{TurnID: t.ID, SessionID: id, Status: t.State, LastSeq: tx.Head()}}}
		}
		if evs, err = tx.Append(ctx, turn, f); err != nil || s.opt.Late == nil {
			return err
		}
		return s.opt.Late(ctx, tx.Tx, workspace, id)
	})
	if err != nil {
		return Feedback{}, err
	}
	return Feedback{TurnID: turn, Rating: f.Rating, Note: f.Note, Key: f.Key, At: evs[0].At.UTC()}, nil
}

// Feedback returns the newest opinion of each answer of a session.
func (s *Store) Feedback(ctx context.Context, workspace, id uuid.UUID) ([]Feedback, error) {
	head, err := s.Head(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.q.FeedbackList(ctx, id, head.Created)
	if err != nil {
		return nil, fmt.Errorf("list feedback: %w", err)
	}
	list := make([]Feedback, 0, len(rows))
	for _, r := range rows {
		var f event.Feedback
		if err := json.Unmarshal(r.Data, &f); err != nil {
			return nil, fmt.Errorf("read feedback: %w", err)
		}
		list = append(list, Feedback{TurnID: r.TurnID, Rating: f.Rating, Note: f.Note, Key: f.Key, At: r.At.UTC()})
	}
	return list, nil
}
