package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/callback"
)

// CallbackSecret hands the secret out that a workspace's callbacks are signed with,
// once; then it fails with callback.ErrShown.
func (a *Admin) CallbackSecret(ctx context.Context, workspace string) (string, error) {
	s, id, err := a.callbacks(ctx, workspace)
	if err != nil {
		return "", err
	}
	return s.Secret(ctx, id)
}

// RotateCallbackSecret makes another, and the one before it signs too for the overlap.
func (a *Admin) RotateCallbackSecret(ctx context.Context, workspace string, overlap time.Duration) (string, error) {
	s, id, err := a.callbacks(ctx, workspace)
	if err != nil {
		return "", err
	}
	return s.Rotate(ctx, id, overlap)
}

func (a *Admin) callbacks(ctx context.Context, workspace string) (*callback.Store, uuid.UUID, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, uuid.Nil, err
	}
	v, err := a.vault(ctx)
	if err != nil {
		return nil, uuid.Nil, err
	}
	guard, err := egress.New(egress.Config{}) // nothing is sent from here
	if err != nil {
		return nil, uuid.Nil, err
	}
	return callback.NewStore(a.pool, v.Keyring(), guard), w.ID, nil
}
