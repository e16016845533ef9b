package server

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// Results are the results that a client posts in a chat.
type Results struct {
	Session uuid.UUID // of the chat; uuid.Nil: the chat has no name
	List    []turn.ToolResult
	Choice  *turn.ToolChoice // for the next steps of the turn; nil: as before
}

// ContinueTurn posts results of calls of the caller's own tools, which identify their turn. It
// returns a reading of their turn after the question for the results. A call of another chat does
// not exist. A caller that may not read the turn cannot post its results.
func (s *Server) ContinueTurn(ctx context.Context, c Caller, res Results) (rd Reading, p session.Posted, err error) {
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	id, of, err := s.Sessions.CallTurn(ctx, c.Workspace.ID, res.List[0].ToolUseID)
	if err != nil {
		return rd, p, err
	}
	t, _, err := s.Sessions.Answer(ctx, c.Workspace.ID, of)
	if err != nil {
		return rd, p, err
	}
	rd = readingOf(t)
	in := cmp.Or(res.Session, id)
	if err := rd.CheckReader(c); err != nil && in == id {
		return rd, p, err
	}
	p, err = s.Turns.ContinueTurn(ctx, c.Workspace.ID, in, c.Key, res.List, res.Choice)
	rd.After, rd.Tools = p.Question, true
	return rd, p, err
}
