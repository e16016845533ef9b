package server

import (
	"context"

	"github.com/google/uuid"

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
