package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Approval is a request of a turn for an approval or a secret.
type Approval struct {
	ApprovalID  string          `json:"approval_id"`
	Kind        string          `json:"kind"`   // approval, secret, tool
	Status      string          `json:"status"` // pending, allowed, denied, provided, skipped, expired, canceled
	SessionID   string          `json:"session_id"`
	TurnID      string          `json:"turn_id"`
	Request     json.RawMessage `json:"request"` // the data of its input_required or tool_required frame; null once the session is erased
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	SecondsLeft int             `json:"seconds_left"`
	DecidedAt   *time.Time      `json:"decided_at"`
	DecidedBy   *Decider        `json:"decided_by"` // nil if it is undecided or expired
	Reason      string          `json:"reason"`
	Pattern     string          `json:"allowlist_pattern"`
	// Raw is the approval as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps Raw.
func (a *Approval) UnmarshalJSON(text []byte) error {
	type plain Approval
	if err := json.Unmarshal(text, (*plain)(a)); err != nil {
		return err
	}
	a.Raw = bytes.Clone(text)
	return nil
}

// Decider is the key that decided an approval.
type Decider struct {
	KeyID string `json:"key_id"`
	Actor string `json:"actor"` // the user behind the key, as the approver named them; "" if unknown
}

// ApprovalQuery filters the list of approvals. The zero value lists all, newest first.
type ApprovalQuery struct {
	Status    string
	SessionID string
	Limit     int
	Cursor    string
}

// Approvals lists the workspace's approvals and secret requests.
func (c *Client) Approvals(ctx context.Context, q ApprovalQuery) (Page[Approval], error) {
	return callJSON[Page[Approval]](ctx, c, http.MethodGet, withQuery(c.workspaceURL("approvals"), q.Limit, map[string]string{
		"status": q.Status, "session_id": q.SessionID, "cursor": q.Cursor,
	}), nil)
}

// Approval returns an approval or a secret request.
func (c *Client) Approval(ctx context.Context, id string) (Approval, error) {
	out, err := callJSON[struct{ Data Approval }](ctx, c, http.MethodGet, c.workspaceURL("approvals", url.PathEscape(id)), nil)
	return out.Data, err
}

// Decision decides an approval.
type Decision struct {
	Decision string `json:"decision"` // allow, deny
	// Pattern, with allow, adds calls to the allow-list.
	Pattern string `json:"allowlist_pattern,omitempty"`
	// Reason, with deny, is for the agent.
	Reason string `json:"reason,omitempty"`
	// Actor names the user behind the key. It is recorded and shown.
	Actor string `json:"actor,omitempty"`
}

// Decided is the state of an approval after a decision.
type Decided struct {
	ApprovalID string     `json:"approval_id"`
	Kind       string     `json:"kind"`
	KeyName    string     `json:"key_name,omitempty"`
	Status     string     `json:"status"` // allowed, denied, provided, skipped
	DecidedAt  *time.Time `json:"decided_at"`
	DecidedBy  *Decider   `json:"decided_by"`
	Pattern    string     `json:"allowlist_pattern"`
	SessionID  string     `json:"session_id"`
	EventsURL  string     `json:"events_url"`
	Already    bool       `json:"already_decided"` // an earlier decision was the same
}

// Decide allows or denies the operations of an approval. The first decision wins: a different one
// fails with an *Error whose Standing is the status of the approval.
func (c *Client) Decide(ctx context.Context, id string, d Decision) (Decided, error) {
	u := c.base.JoinPath("api/workspaces", url.PathEscape(c.opt.Workspace), "approvals", url.PathEscape(id), "decide")
	out, err := callJSON[struct{ Data Decided }](ctx, c, http.MethodPost, u, d)
	return out.Data, err
}

// ProvideSecret provides the secret that a turn requested. The actor names the user behind the key
// and may be empty.
func (c *Client) ProvideSecret(ctx context.Context, id, value, actor string) (Decided, error) {
	return c.answerSecret(ctx, id, secretAnswer{"provide", value, actor})
}

// SkipSecret continues a turn without the secret that it requested.
func (c *Client) SkipSecret(ctx context.Context, id, actor string) (Decided, error) {
	return c.answerSecret(ctx, id, secretAnswer{Action: "skip", Actor: actor})
}

type secretAnswer struct {
	Action string `json:"action"`
	Value  string `json:"value,omitempty"`
	Actor  string `json:"actor,omitempty"`
}

func (c *Client) answerSecret(ctx context.Context, id string, answer secretAnswer) (Decided, error) {
	out, err := callJSON[struct{ Data Decided }](ctx, c, http.MethodPost, c.workspaceURL("approvals", url.PathEscape(id), "secret"), answer)
	return out.Data, err
}
