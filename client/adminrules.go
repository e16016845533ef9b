package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Tool is a built-in tool with its rule.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Unavailable *string         `json:"unavailable"` // why this server cannot run it
	DefaultRule string          `json:"default_rule"`
	Rule        *string         `json:"rule"` // allow, ask or deny; nil: the built-in rule
	RuleSince   *time.Time      `json:"rule_since"`
}

// Tools lists the built-in tools and those of tool servers.
func (a Admin) Tools(ctx context.Context) ([]Tool, error) {
	return listAll[Tool](ctx, a, a.workspace(http.MethodGet, nil, "tools"))
}

// PutToolRule sets the rule of a tool: allow, ask or deny.
func (a Admin) PutToolRule(ctx context.Context, tool, rule string) (Tool, error) {
	return administer[Tool](ctx, a, a.workspace(http.MethodPut, object{"rule": rule}, "tools", tool, "rule"))
}

// DeleteToolRule restores the built-in rule of a tool.
func (a Admin) DeleteToolRule(ctx context.Context, tool string) (Tool, error) {
	return administer[Tool](ctx, a, a.workspace(http.MethodDelete, nil, "tools", tool, "rule"))
}

// Pattern is an entry of the allow-list.
type Pattern struct {
	ID         string     `json:"allowlist_id"`
	Tool       string     `json:"tool"`
	Pattern    string     `json:"pattern"`
	AddedBy    string     `json:"added_by"` // id of a key or member, or cli:USER
	ApprovalID *string    `json:"approval_id"`
	Hits       int64      `json:"hits"`
	LastHitAt  *time.Time `json:"last_hit_at"`
	CreatedAt  time.Time  `json:"created_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

// Allowlist lists the patterns of the workspace, with those that are revoked.
func (a Admin) Allowlist(ctx context.Context) ([]Pattern, error) {
	return listAll[Pattern](ctx, a, a.workspace(http.MethodGet, nil, "allowlist"))
}

// AddPattern adds a pattern to the allow-list.
func (a Admin) AddPattern(ctx context.Context, pattern string) (Pattern, error) {
	return administer[Pattern](ctx, a, a.workspace(http.MethodPost, object{"pattern": pattern}, "allowlist"))
}

// RevokePattern removes a pattern from the allow-list. Its record stays.
func (a Admin) RevokePattern(ctx context.Context, id string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "allowlist", id))
	return err
}

// Egress is the policy for the hosts that tools may reach.
type Egress struct {
	Versioned
	Public bool     `json:"public"` // every public host
	Hosts  []string `json:"hosts"`
}

// Egress returns the policy of the workspace.
func (a Admin) Egress(ctx context.Context) (Egress, error) {
	return administer[Egress](ctx, a, a.workspace(http.MethodGet, nil, "egress"))
}

// PutEgress replaces the policy of the workspace.
func (a Admin) PutEgress(ctx context.Context, policy Egress, etag string) (Egress, error) {
	if policy.Hosts == nil {
		policy.Hosts = []string{}
	}
	return administer[Egress](ctx, a, a.workspace(http.MethodPut, policy, "egress").ifMatch(etag))
}

// EgressRequest is a request that a tool sent, or was not allowed to send.
type EgressRequest struct {
	ID          int64     `json:"request_id"`
	SessionID   string    `json:"session_id"`
	TurnID      string    `json:"turn_id"`
	ToolUseID   string    `json:"tool_use_id"`
	At          time.Time `json:"at"`
	Method      string    `json:"method"`
	URL         string    `json:"url"` // without its query
	Credentials []string  `json:"credentials"`
	Refused     []string  `json:"refused_credentials"`
	Decision    string    `json:"decision"`
	Times       int       `json:"times"` // rejected requests to one host within a minute
	Status      *int      `json:"status"`
}

// EgressRequests lists the newest requests, at most 100. An empty session lists those of all.
func (a Admin) EgressRequests(ctx context.Context, session string, limit int) ([]EgressRequest, error) {
	call := a.workspace(http.MethodGet, nil, "egress", "requests").with("session_id", session)
	if limit > 0 {
		call = call.with("limit", strconv.Itoa(limit))
	}
	return administer[[]EgressRequest](ctx, a, call)
}
