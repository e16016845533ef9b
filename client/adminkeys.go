package client

import (
	"context"
	"net/http"
	"time"
)

// Key is an API key, without its text.
type Key struct {
	ID           string     `json:"key_id"`
	Name         string     `json:"name"`
	Last4        string     `json:"last4"` // the last four characters of the key
	Scopes       []string   `json:"scopes"`
	Loopback     bool       `json:"loopback"` // it works from the server itself only
	WebhookToken bool       `json:"webhook_token"`
	CreatedBy    *string    `json:"created_by"` // id of a key; nil: a command
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    *time.Time `json:"expires_at"`
	LastUsedAt   *time.Time `json:"last_used_at"` // exact to a minute
	RevokedAt    *time.Time `json:"revoked_at"`
	ReplacedBy   *string    `json:"replaced_by"`
	Owner        string     `json:"owner,omitempty"` // in lists: e-mail address of the member whose personal token it is
}

// NewKey is a key with its text, which only the response to its creation has.
type NewKey struct {
	Key
	Text string `json:"key"`
}

// KeyGrant describes a key to create.
type KeyGrant struct {
	Name   string
	Scopes []string
	Life   time.Duration // whole seconds; 0: it does not expire
}

// Keys lists the keys of the workspace, with those that are revoked.
func (a Admin) Keys(ctx context.Context) ([]Key, error) {
	return listAll[Key](ctx, a, a.workspace(http.MethodGet, nil, "keys"))
}

// CreateKey creates a key. The caller's key needs all of its scopes.
func (a Admin) CreateKey(ctx context.Context, g KeyGrant) (NewKey, error) {
	in := object{"name": g.Name, "scopes": g.Scopes}
	if g.Life > 0 {
		in["expires_in"] = int64(g.Life / time.Second)
	}
	return administer[NewKey](ctx, a, a.workspace(http.MethodPost, in, "keys"))
}

// RollKey creates a key in place of another, which stays valid for the overlap.
func (a Admin) RollKey(ctx context.Context, id string, overlap time.Duration) (NewKey, error) {
	return administer[NewKey](ctx, a, a.workspace(http.MethodPost, overlapBody(overlap), "keys", id, "roll"))
}

func overlapBody(overlap time.Duration) object {
	return object{"overlap_seconds": int64(overlap / time.Second)}
}

// RevokeKey ends a key and its streams.
func (a Admin) RevokeKey(ctx context.Context, id string) (Key, error) {
	return administer[Key](ctx, a, a.workspace(http.MethodDelete, nil, "keys", id))
}

// WebhookToken is the webhook_token of a workspace. Text is only in the response to its creation.
type WebhookToken struct {
	Exists bool   `json:"exists"`
	Token  *Key   `json:"token"`
	Text   string `json:"webhook_token"`
}

// WebhookToken returns the webhook_token of the workspace without its text.
func (a Admin) WebhookToken(ctx context.Context) (WebhookToken, error) {
	return administer[WebhookToken](ctx, a, a.workspace(http.MethodGet, nil, "webhook-token"))
}

// RollWebhookToken creates a webhook_token and ends the one before it.
func (a Admin) RollWebhookToken(ctx context.Context) (WebhookToken, error) {
	return administer[WebhookToken](ctx, a, a.workspace(http.MethodPost, nil, "webhook-token", "roll"))
}

// RevokeWebhookToken ends the webhook_token. A workspace without one is not an error.
func (a Admin) RevokeWebhookToken(ctx context.Context) error {
	_, err := administer[WebhookToken](ctx, a, a.workspace(http.MethodDelete, nil, "webhook-token"))
	return err
}

// CallbackSecrets are the signing secrets of callbacks. Text is only in the response to the creation
// of a secret.
type CallbackSecrets struct {
	Secrets []CallbackSecret `json:"secrets"`
	Text    string           `json:"secret"`
}

// CallbackSecret is a signing secret without its text.
type CallbackSecret struct {
	ID        string     `json:"secret_id"`
	Shown     bool       `json:"shown"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"` // nil: the newest
}

// CallbackSecrets returns the signing secrets of the workspace.
func (a Admin) CallbackSecrets(ctx context.Context) (CallbackSecrets, error) {
	return administer[CallbackSecrets](ctx, a, a.workspace(http.MethodGet, nil, "callback-secret"))
}

// ShowCallbackSecret returns the signing secret with its text, and creates it if there is none. The
// text is shown once: from the second time on it fails with OBJECT_CONFLICT.
func (a Admin) ShowCallbackSecret(ctx context.Context) (CallbackSecrets, error) {
	return administer[CallbackSecrets](ctx, a, a.workspace(http.MethodPost, nil, "callback-secret"))
}

// RollCallbackSecret creates a signing secret. The one before it signs too for the overlap.
func (a Admin) RollCallbackSecret(ctx context.Context, overlap time.Duration) (CallbackSecrets, error) {
	return administer[CallbackSecrets](ctx, a, a.workspace(http.MethodPost, overlapBody(overlap), "callback-secret", "roll"))
}

// Credential is a secret of the workspace without its value.
type Credential struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Hosts     []string  `json:"allowed_hosts"`
	InQuery   bool      `json:"in_query"`
	InBody    bool      `json:"in_body"`
	AllowHTTP bool      `json:"allow_http"`
	HasValue  bool      `json:"has_value"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
}

// CredentialChange registers a credential or replaces it.
type CredentialChange struct {
	Name      string   `json:"-"`
	Value     string   `json:"value,omitempty"` // "": a stored value stays
	Hosts     []string `json:"allowed_hosts"`
	InQuery   bool     `json:"in_query"`
	InBody    bool     `json:"in_body"`
	AllowHTTP bool     `json:"allow_http"`
}

// Credentials lists the secrets of the workspace.
func (a Admin) Credentials(ctx context.Context) ([]Credential, error) {
	return listAll[Credential](ctx, a, a.workspace(http.MethodGet, nil, "credentials"))
}

// PutCredential registers a secret or replaces its hosts, surfaces and, if one is given, its value.
func (a Admin) PutCredential(ctx context.Context, change CredentialChange) (Credential, error) {
	return administer[Credential](ctx, a, a.workspace(http.MethodPut, change, "credentials", change.Name))
}

// DeleteCredential deletes a secret and its value.
func (a Admin) DeleteCredential(ctx context.Context, name string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "credentials", name))
	return err
}
