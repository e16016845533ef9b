package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// BrowserToken is a token for the page of one end user.
type BrowserToken struct {
	Token      string     `json:"token"` // the bearer value; only in the response that creates it
	TokenID    string     `json:"token_id"`
	SessionID  string     `json:"session_id"` // "" for the token of a user
	User       string     `json:"user"`       // "" for the token of a session
	Agent      string     `json:"agent"`      // "" for the default agent
	Scopes     []string   `json:"scopes"`
	CreatedBy  string     `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

// TokenOptions describes a browser token to be created. Either User or SessionID is set.
type TokenOptions struct {
	SessionID string        // the session that the token is for
	User      string        // the user whose sessions the token is for
	Agent     string        // answers the messages; "": the default agent
	Life      time.Duration // at most an hour; 0: 15 minutes
}

// CreateToken creates a browser token. It ends with the client's key.
func (c *Client) CreateToken(ctx context.Context, o TokenOptions) (BrowserToken, error) {
	body := make(map[string]any)
	path := c.workspaceURL("tokens")
	if o.SessionID != "" {
		path = c.workspaceURL("sessions", url.PathEscape(o.SessionID), "tokens")
	}
	if o.User != "" {
		body["user"] = o.User
	}
	if o.Agent != "" {
		body["agent"] = o.Agent
	}
	if o.Life > 0 {
		body["expires_in"] = int(o.Life.Seconds())
	}
	out, err := callJSON[struct{ Data BrowserToken }](ctx, c, http.MethodPost, path, body)
	return out.Data, err
}

// RevokeToken ends a browser token that the client's key has created.
func (c *Client) RevokeToken(ctx context.Context, token string) (BrowserToken, error) {
	out, err := callJSON[struct{ Data BrowserToken }](ctx, c, http.MethodDelete, c.workspaceURL("tokens", url.PathEscape(token)), nil)
	return out.Data, err
}
