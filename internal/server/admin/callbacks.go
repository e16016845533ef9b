package admin

import (
	"context"
	"errors"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/callback"
)

// secretsView are the signing secrets of callbacks. Text is there once, when a secret is created.
type secretsView struct {
	Secrets []callback.SecretState `json:"secrets"`
	Text    *string                `json:"secret,omitempty"`
}

func (s *api) getCallbackSecret(ctx context.Context, c *call) (any, error) {
	list, err := s.Callbacks.Secrets(ctx, c.Caller.Workspace.ID)
	return secretsView{Secrets: list}, err
}

// showCallbackSecret returns the secret once, and creates it if there is none.
func (s *api) showCallbackSecret(ctx context.Context, c *call) (any, error) {
	ws := c.Caller.Workspace.ID
	text, err := s.Callbacks.Secret(ctx, ws)
	if errors.Is(err, callback.ErrShown) {
		return nil, fault.New(fault.ObjectConflict, "The secret was shown before, and it is shown once. If it is lost, roll it.")
	}
	if err != nil {
		return nil, err
	}
	list, err := s.Callbacks.Secrets(ctx, ws)
	return once{secretsView{list, &text}, secretsView{Secrets: list}}, err
}

// rollCallbackSecret creates a secret. The one before it signs too for the overlap.
func (s *api) rollCallbackSecret(ctx context.Context, c *call) (any, error) {
	overlap := time.Duration(c.body.Int("overlap_seconds", 24*60*60, 0, int(maxOverlap/time.Second))) * time.Second
	if err := c.Err(); err != nil {
		return nil, err
	}
	ws := c.Caller.Workspace.ID
	text, err := s.Callbacks.Rotate(ctx, ws, overlap)
	if err != nil {
		return nil, err
	}
	list, err := s.Callbacks.Secrets(ctx, ws)
	return once{secretsView{list, &text}, secretsView{Secrets: list}}, err
}
