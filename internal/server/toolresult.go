package server

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
)

// PostResults stores results of calls of the caller's own tools, which a turn of the session waits
// for, and returns a reading of that turn after its question.
func (s *Server) PostResults(ctx context.Context, c Caller, session uuid.UUID, results []turn.ToolResult) (Reading, error) {
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	posted, err := s.Turns.PostResults(ctx, c.Workspace.ID, session, c.Key, results)
	if err != nil {
		return Reading{}, err
	}
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, posted.Turn)
	rd := readingOf(t)
	rd.After = posted.Question
	return rd, err
}

// Results are the results that a client posts in a chat.
type Results struct {
	Session uuid.UUID // of the chat; uuid.Nil: the chat has no name
	List    []turn.ToolResult
	Choice  *turn.ToolChoice // for the next steps of the turn; nil: as before
}

// ContinueTurn posts results of calls of the caller's own tools, which identify their turn. It returns a reading of their turn
// after the question for the results, and the calls whose results are still missing. A call of
// another chat, or of a turn that the caller may not read, does not exist.
func (s *Server) ContinueTurn(ctx context.Context, c Caller, res Results) (rd Reading, open []string, err error) {
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	id, of, err := s.Sessions.CallTurn(ctx, c.Workspace.ID, res.List[0].ToolUseID)
	if err != nil {
		return rd, nil, err
	}
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, of)
	if err != nil {
		return rd, nil, err
	}
	rd = readingOf(t)
	if res.Session != uuid.Nil && res.Session != id || rd.CheckReader(c) != nil {
		return rd, nil, fault.New(fault.ToolCallNotFound, "No call %.80q waits for a result in this chat.", res.List[0].ToolUseID)
	}
	p, err := s.Turns.ContinueTurn(ctx, c.Workspace.ID, id, c.Key, res.List, res.Choice)
	rd.After, rd.Tools = p.Question, true
	return rd, p.Open, err
}
