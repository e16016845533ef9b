package admin

import (
	"context"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
)

// limitsView are the limits of a workspace with their present use.
type limitsView struct {
	MaxRunning   int               `json:"max_running"`
	Turns        session.OpenTurns `json:"turns"`
	StorageQuota int64             `json:"storage_quota"` // bytes; 0: none
	Storage      workspace.Storage `json:"storage"`

	// Limits of each key, with those of the server where the workspace does not set its own.
	MessagesPerMinute int `json:"messages_per_minute"`
	CallsPerMinute    int `json:"calls_per_minute"`
	OpenStreams       int `json:"open_streams"`

	Budgets []budgetView `json:"budgets"`
}

func (s *api) getLimits(ctx context.Context, c *call) (any, error) {
	ws := c.Caller.Workspace
	turns, err := s.Sessions.OpenTurns(ctx, ws.ID)
	if err != nil {
		return nil, err
	}
	stored, err := s.Workspaces.Storage(ctx)
	if err != nil {
		return nil, err
	}
	budgets, err := s.budgetViews(ctx, c)
	if err != nil {
		return nil, err
	}
	keys := s.KeyLimits(ws)
	return limitsView{ws.MaxRunning, turns, ws.StorageQuota, stored[ws.ID], keys.Messages, keys.Calls, keys.Streams, budgets}, nil
}
