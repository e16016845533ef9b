package admin

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// erasureView is the result of an erasure.
type erasureView struct {
	SessionID uuid.UUID `json:"session_id"`
	ErasedAt  time.Time `json:"erased_at"`
	Before    bool      `json:"erased_before"`
	Canceled  int       `json:"canceled_turns"`
}

// erase removes the content of a session, which is named by its id or by its caller.
func (s *api) erase(ctx context.Context, c *call) (any, error) {
	var id *uuid.UUID
	var caller *string
	if c.body.Has("session_id") {
		id = new(c.body.RequiredID("session_id"))
	}
	if c.body.Has("caller_id") {
		caller = new(c.body.String("caller_id", request.MaxCallerID))
	}
	if (id == nil) == (caller == nil) {
		c.Add(fault.Violation{Param: "/session_id", Rule: "exactly_one", Message: "Send session_id or caller_id, one of the two."})
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	session, e, err := s.Sessions.EraseOf(ctx, c.Caller.Workspace.ID, id, caller, c.Caller.By())
	return erasureView{session, e.At.UTC(), e.Already, e.Canceled}, err
}

func (s *api) listErasures(ctx context.Context, c *call) (any, error) {
	limit, cursor := c.query.Limit(usualPage), c.query.Cursor()
	if err := c.Err(); err != nil {
		return nil, err
	}
	page, err := s.Sessions.Erasures(ctx, c.Caller.Workspace.ID, cursor, limit)
	return listed{page}, err
}
