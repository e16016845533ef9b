package apikey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

func TestWebhookTokenIsAKeyWithTwoScopes(t *testing.T) {
	t.Parallel()
	_, s, ws := setup(t)
	if _, err := s.WebhookToken(t.Context(), ws); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("before one exists: %v", err)
	}
	made, text, err := s.CreateWebhookToken(t.Context(), ws)
	if err != nil || !strings.HasPrefix(text, "whtok_") || made.ExpiresAt != nil {
		t.Fatalf("%+v, %v", made, err)
	}
	p, err := s.Authenticate(t.Context(), text, outside)
	if err != nil || p.Workspace != ws || p.Key != made.ID || p.Scopes.String() != "chat, sessions:read" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, _, err := s.CreateWebhookToken(t.Context(), ws); !errors.Is(err, apikey.ErrOnlyOne) {
		t.Errorf("a second one: %v", err)
	}
	if _, _, err := s.Rotate(t.Context(), ws, made.ID, 0); !errors.Is(err, apikey.ErrOnlyOne) {
		t.Errorf("rotated: %v", err)
	}
	known, err := s.WebhookToken(t.Context(), ws)
	if err != nil || known.ID != made.ID || known.LastUsedAt == nil || known.Hint() != text[:14]+"…"+text[len(text)-4:] {
		t.Errorf("%+v, %v", known, err)
	}
	if _, err := s.RevokeWebhookToken(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(t.Context(), text, outside); !refused(err) {
		t.Errorf("revoked: %v", err)
	}
	if _, again, err := s.CreateWebhookToken(t.Context(), ws); err != nil || again == text {
		t.Errorf("after a revocation: %v", err)
	}
}

// Only CreateWebhookToken makes a webhook token, and a webhook token has no other rights.
func TestWebhookTokenCannotHaveMore(t *testing.T) {
	t.Parallel()
	pool, s, ws := setup(t)
	made, _, err := s.CreateWebhookToken(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{`scopes = '{chat}'`, `scopes = '{chat,secret,sessions:read}'`, `scopes = '{}'`, `loopback = true`,
		`expires_at = now()`} {
		if _, err := pool.Exec(t.Context(), `UPDATE api_keys SET `+change+` WHERE id = $1`, made.ID); err == nil {
			t.Errorf("it can be changed to %s", change)
		}
	}
}
