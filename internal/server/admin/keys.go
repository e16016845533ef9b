package admin

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// maxLife is the maximum time to a key's expiry, and maxOverlap that of a replaced key.
const (
	maxLife    = 100 * 365 * 24 * time.Hour
	maxOverlap = 30 * 24 * time.Hour
)

// keyView is a key in a response. Text is there once, when the key is created.
type keyView struct {
	apikey.Key
	Text *string `json:"key,omitempty"`
}

// newKey returns a key with its text, which only the first response has.
func newKey(k apikey.Key, text string) any { return once{keyView{k, &text}, keyView{Key: k}} }

func (s *api) listKeys(ctx context.Context, c *call) (any, error) {
	keys, err := s.Keys.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	return paged(c, keys, func(k apikey.Key) string { return strconv.FormatInt(k.CreatedAt.UnixMicro(), 10) + k.ID })
}

func (s *api) createKey(ctx context.Context, c *call) (any, error) {
	g := apikey.Grant{Workspace: c.Caller.Workspace.ID, Name: c.body.RequiredString("name", 100), By: c.grantor()}
	if c.body.Require("scopes") {
		names := c.body.Strings("scopes", 50)
		if c.Err() == nil {
			var err error
			if g.Scopes, err = apikey.ParseScopes(names); err != nil {
				return nil, err
			}
		}
	}
	if seconds := c.optionalInt("expires_in", 1, int(maxLife/time.Second)); seconds != nil {
		g.Life = new(time.Duration(*seconds) * time.Second)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	key, text, err := s.Keys.Create(ctx, g)
	if err != nil {
		return nil, err
	}
	return newKey(key, text), nil
}

func (s *api) getKey(ctx context.Context, c *call) (any, error) {
	return s.findKey(ctx, c)
}

func (s *api) findKey(ctx context.Context, c *call) (apikey.Key, error) {
	keys, err := s.Keys.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return apikey.Key{}, err
	}
	id := c.PathValue("keyId")
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return apikey.Key{}, notFound("key", id)
}

func (s *api) updateKey(ctx context.Context, c *call) (any, error) {
	c.notNull("name")
	change := apikey.Change{Forever: c.nulls["expires_at"], ExpiresAt: c.body.Time("expires_at")}
	if c.body.Has("name") {
		change.Name = new(c.body.String("name", 100))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	key, err := s.Keys.Update(ctx, c.Caller.Workspace.ID, c.PathValue("keyId"), change)
	return key, c.keyError(err)
}

func (s *api) revokeKey(ctx context.Context, c *call) (any, error) {
	id := c.PathValue("keyId")
	if err := s.Keys.Revoke(ctx, c.Caller.Workspace.ID, id); err != nil {
		return nil, c.keyError(err)
	}
	return s.findKey(ctx, c)
}

func (s *api) rollKey(ctx context.Context, c *call) (any, error) {
	overlap := time.Duration(c.body.Int("overlap_seconds", 24*60*60, 0, int(maxOverlap/time.Second))) * time.Second
	if err := c.Err(); err != nil {
		return nil, err
	}
	old, err := s.findKey(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.mayGrant(old.Scopes); err != nil {
		return nil, err
	}
	key, text, err := s.Keys.Rotate(ctx, c.Caller.Workspace.ID, old.ID, overlap)
	if err != nil {
		return nil, c.keyError(err)
	}
	return newKey(key, text), nil
}

// mayGrant rejects scopes that the caller lacks.
func (c *call) mayGrant(scopes apikey.Scopes) error {
	return apikey.Grant{Name: "x", Scopes: scopes, By: c.grantor()}.Check()
}

// grantor returns the key that grants scopes, nil for a command, which may grant any.
func (c *call) grantor() *apikey.Principal {
	if c.Caller.Command != "" {
		return nil
	}
	return &c.Caller.Principal
}

// keyError converts the errors of the store of keys.
func (c *call) keyError(err error) error {
	switch {
	case errors.Is(err, apikey.ErrNotFound):
		return notFound("valid key", c.PathValue("keyId"))
	case errors.Is(err, apikey.ErrReplaced):
		return fault.New(fault.ObjectConflict, "The key %s was rolled before. Roll the key that replaced it.", c.PathValue("keyId"))
	case errors.Is(err, apikey.ErrOnlyOne):
		return fault.New(fault.ObjectConflict, "The webhook_token is not rolled as a key. Use POST …/webhook-token/roll.")
	case errors.Is(err, apikey.ErrPersonal):
		return fault.New(fault.ObjectConflict, "The key %s is a personal token. Its member creates another one in the web application.",
			c.PathValue("keyId"))
	}
	return err
}

// tokenView is the webhook_token in a response.
type tokenView struct {
	Exists bool        `json:"exists"`
	Token  *apikey.Key `json:"token"`
	Text   *string     `json:"webhook_token,omitempty"`
}

func (s *api) getWebhookToken(ctx context.Context, c *call) (any, error) {
	k, err := s.Keys.WebhookToken(ctx, c.Caller.Workspace.ID)
	if errors.Is(err, apikey.ErrNotFound) {
		return tokenView{}, nil
	}
	return tokenView{Exists: true, Token: &k}, err
}

// rollWebhookToken creates a token. An older one ends now: a workspace has at most one.
func (s *api) rollWebhookToken(ctx context.Context, c *call) (any, error) {
	if err := c.mayGrant(apikey.Scopes{apikey.Chat, apikey.SessionsRead}); err != nil {
		return nil, err
	}
	if _, err := s.Keys.RevokeWebhookToken(ctx, c.Caller.Workspace.ID); err != nil && !errors.Is(err, apikey.ErrNotFound) {
		return nil, err
	}
	k, text, err := s.Keys.CreateWebhookToken(ctx, c.Caller.Workspace.ID)
	if errors.Is(err, apikey.ErrOnlyOne) {
		return nil, fault.New(fault.ObjectConflict, "Another request rolled the webhook_token at the same moment.")
	}
	if err != nil {
		return nil, err
	}
	return once{tokenView{true, &k, &text}, tokenView{true, &k, nil}}, nil
}

func (s *api) revokeWebhookToken(ctx context.Context, c *call) (any, error) {
	_, err := s.Keys.RevokeWebhookToken(ctx, c.Caller.Workspace.ID)
	if errors.Is(err, apikey.ErrNotFound) {
		err = nil // the outcome is the same
	}
	return tokenView{}, err
}
