package turn

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// ToolResult is the result of a call as it is posted.
type ToolResult = session.ToolResult

// PostResults stores results of calls of the caller's own tools, which a turn of the session waits
// for: all or none. The first result of a call wins: an equal one is not an error, another one is
// TOOL_CALL_ANSWERED, and a late one is TOOL_CALL_EXPIRED. The turn continues with the last result.
func (s *Service) PostResults(ctx context.Context, workspace, id uuid.UUID, key string, results []ToolResult) (session.Posted, error) {
	return s.ContinueTurn(ctx, workspace, id, key, results, nil)
}

// ContinueTurn is PostResults for a caller that also chooses again which of its tools the model may
// call: choice is for the next steps of the turn; nil: it stays.
func (s *Service) ContinueTurn(
	ctx context.Context, workspace, id uuid.UUID, key string, results []ToolResult, choice *ToolChoice,
) (session.Posted, error) {
	if _, err := s.cfg.Sessions.Head(ctx, workspace, id); err != nil {
		return session.Posted{}, err
	}
	return s.postResults(ctx, id, event.InputTool, key, results, choice)
}

// PostLater stores the result of a call that the server of a tool has accepted. It may arrive
// before the turn waits for it.
func (s *Service) PostLater(ctx context.Context, workspace uuid.UUID, key string, result ToolResult) (session.Posted, error) {
	id, _, err := s.cfg.Sessions.CallTurn(ctx, workspace, result.ToolUseID)
	if err != nil {
		return session.Posted{}, err
	}
	return s.postResults(ctx, id, event.InputResult, key, []ToolResult{result}, nil)
}

func (s *Service) postResults(
	ctx context.Context, id uuid.UUID, kind event.Input, key string, results []ToolResult, choice *ToolChoice,
) (p session.Posted, err error) {
	err = s.cfg.Sessions.Update(ctx, id, func(tx *session.Tx) error {
		if p, err = tx.PostResults(ctx, kind, key, results); err != nil || !p.Resumed {
			return err
		}
		if choice != nil {
			options, err := json.Marshal(struct {
				Choice ToolChoice `json:"tool_choice"`
			}{*choice})
			if err == nil {
				err = tx.ChooseOptions(ctx, p.Turn, options)
			}
			if err != nil {
				return err
			}
		}
		return s.insertJob(ctx, tx, p.Turn)
	})
	return p, err
}
