package admin

import (
	"context"

	"github.com/parley-server/parley/internal/store/workspace"
)

func (s *api) pauseWorkspace(ctx context.Context, c *call) (any, error) {
	return viewPause(s.Workspaces.Pause(ctx, c.Caller.Workspace.ID, c.Caller.By()))
}

func (s *api) resumeWorkspace(ctx context.Context, c *call) (any, error) {
	return viewPause(s.Workspaces.Resume(ctx, c.Caller.Workspace.ID))
}

func (s *api) pauseServer(ctx context.Context, c *call) (any, error) {
	return viewPause(s.Workspaces.PauseServer(ctx, c.Caller.By()))
}

func (s *api) resumeServer(ctx context.Context, _ *call) (any, error) {
	return viewPause(s.Workspaces.ResumeServer(ctx))
}

// viewPause returns a state of the switch with its time in UTC.
func viewPause(p workspace.Pause, err error) (any, error) {
	if p.At != nil {
		p.At = new(p.At.UTC())
	}
	return p, err
}
