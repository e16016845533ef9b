package apikey

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/pgerr"
)

// A webhook_token identifies callers that predate API keys. It is a key with these exceptions: a
// workspace has at most one, it has exactly the scopes chat and sessions:read, and it neither
// expires nor rotates.

// CreateWebhookToken creates the workspace's webhook_token, or fails with ErrOnlyOne if it already
// exists. It returns the token's text, which is never shown again.
func (s *Store) CreateWebhookToken(ctx context.Context, workspace uuid.UUID) (Key, string, error) {
	key, text, err := s.insertKey(ctx, s.q, Grant{Workspace: workspace, Name: "webhook_token", Scopes: Scopes{Chat, SessionsRead},
		webhook: true})
	if pgerr.Constraint(err) == "api_keys_webhook" {
		return Key{}, "", ErrOnlyOne
	}
	return key, text, err
}

// WebhookToken returns the workspace's webhook_token without its secret, or ErrNotFound.
func (s *Store) WebhookToken(ctx context.Context, workspace uuid.UUID) (Key, error) {
	keys, err := s.List(ctx, workspace)
	if err != nil {
		return Key{}, err
	}
	for _, k := range keys {
		if k.Webhook && k.RevokedAt == nil {
			return k, nil
		}
	}
	return Key{}, ErrNotFound
}

// RevokeWebhookToken ends the workspace's webhook_token, as Revoke does a key.
func (s *Store) RevokeWebhookToken(ctx context.Context, workspace uuid.UUID) (Key, error) {
	k, err := s.WebhookToken(ctx, workspace)
	if err != nil {
		return k, err
	}
	return k, s.Revoke(ctx, workspace, k.ID)
}

// Hint returns the displayable part of the key, enough to recognise it.
func (k Key) Hint() string {
	return fmt.Sprintf("%s%s…%s", kindPrefix(k.Webhook, false), k.ID, k.Last4)
}
