package admin

import (
	"context"

	"github.com/parley-server/parley/internal/store/adminlog"
)

func (s *api) listWorkspaceLog(ctx context.Context, c *call) (any, error) {
	q := c.logQuery()
	q.Workspace = &c.Caller.Workspace.ID
	return s.listLog(ctx, c, q)
}

func (s *api) listServerLog(ctx context.Context, c *call) (any, error) {
	q := c.logQuery()
	q.Workspace = c.query.ID("workspace_id")
	return s.listLog(ctx, c, q)
}

func (s *api) listLog(ctx context.Context, c *call, q adminlog.Query) (any, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	page, err := s.Log.List(ctx, q)
	return listed{page}, err
}

func (c *call) logQuery() adminlog.Query {
	return adminlog.Query{Limit: c.query.Limit(usualPage), Object: c.query.OptionalText("object"), ObjectID: c.query.OptionalText("object_id"),
		Actor: c.query.OptionalText("actor"), Since: c.query.Time("since"), Cursor: c.query.Cursor()}
}
