package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Canceled is the result of Cancel. A session without a running turn is not an error.
type Canceled struct {
	Canceled           bool   `json:"canceled"`
	RunnerHaltDeferred bool   `json:"runner_halt_deferred"`
	Reason             string `json:"reason,omitempty"`
}

// Cancel cancels the running turn of a session.
func (c *Client) Cancel(ctx context.Context, session string) (Canceled, error) {
	out, err := callJSON[struct{ Data Canceled }](ctx, c, http.MethodPost, c.workspaceURL("sessions", url.PathEscape(session), "cancel"), nil)
	return out.Data, err
}

// Page is a page of a list. NextCursor is "" on the last page.
type Page[T any] struct {
	Data       []T    `json:"data"`
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
	// Raw is the response as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps Raw.
func (p *Page[T]) UnmarshalJSON(text []byte) error {
	type plain Page[T]
	if err := json.Unmarshal(text, (*plain)(p)); err != nil {
		return err
	}
	p.Raw = bytes.Clone(text)
	return nil
}

// Session is one conversation.
type Session struct {
	SessionID    string            `json:"session_id"`
	CallerID     string            `json:"caller_id"`
	User         string            `json:"user"` // the end user, "" if unknown
	Title        string            `json:"title"`
	Status       string            `json:"status"`  // not_started, thinking, completed
	Pending      *Pending          `json:"pending"` // nil if it does not wait
	Error        *string           `json:"error"`   // how the newest turn failed
	TurnID       string            `json:"turn_id"`
	LastSeq      int64             `json:"last_seq"`
	MessageCount int               `json:"message_count"`
	Usage        Usage             `json:"usage"`
	Metadata     map[string]string `json:"metadata"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
	ErasedAt     time.Time         `json:"erased_at"`   // zero unless the session is erased
	ForkedFrom   *Origin           `json:"forked_from"` // nil if it is not a fork
}

// Origin is the session whose history a fork continues.
type Origin struct {
	SessionID string `json:"session_id"`
	Seq       int64  `json:"seq"`    // end of the last turn that belongs to the fork
	Erased    bool   `json:"erased"` // that session was erased, or is past its retention
}

// Pending is the approval or secret request that a turn waits for.
type Pending struct {
	Kind       string    `json:"kind"` // approval, secret
	ApprovalID string    `json:"approval_id"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Usage counts tokens. CostUSD is nil if the price is unknown.
type Usage struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
}

// TurnUsage reports the tokens, cost and model of one turn.
type TurnUsage struct {
	Usage
	Model        string `json:"model"`
	FinishReason string `json:"finish_reason,omitempty"` // length if the provider cut the last reply, or ""
	Truncated    bool   `json:"truncated,omitempty"`     // the provider cut the last reply at its token limit

	CachedInputTokens int64 `json:"cached_input_tokens,omitempty"` // of InputTokens: read from the provider's cache
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty"`  // of InputTokens: written to the provider's cache
}

// SessionQuery filters the list of sessions. The zero value lists all, newest first.
type SessionQuery struct {
	CallerID      string
	User          string
	Metadata      map[string]string // pairs that a session must have
	Status        string            // not_started, thinking, completed, waiting, failed, canceled
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Search        string // words of the title or of a message
	Limit         int
	Cursor        string
}

// Sessions lists the workspace's sessions.
func (c *Client) Sessions(ctx context.Context, q SessionQuery) (Page[Session], error) {
	params := map[string]string{"caller_id": q.CallerID, "user": q.User, "status": q.Status, "q": q.Search, "cursor": q.Cursor}
	for name, at := range map[string]time.Time{"created_after": q.CreatedAfter, "created_before": q.CreatedBefore} {
		if !at.IsZero() {
			params[name] = at.Format(time.RFC3339Nano)
		}
	}
	for key, value := range q.Metadata {
		params["metadata["+key+"]"] = value
	}
	return callJSON[Page[Session]](ctx, c, http.MethodGet, withQuery(c.workspaceURL("sessions"), q.Limit, params), nil)
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	out, err := callJSON[struct{ Data Session }](ctx, c, http.MethodGet, c.workspaceURL("sessions", url.PathEscape(id)), nil)
	return out.Data, err
}

// SessionChange is what UpdateSession sets. Zero values keep a field; Metadata replaces all pairs.
type SessionChange struct {
	Title    string
	User     string
	Metadata map[string]string
}

// UpdateSession changes the title, the user or the metadata of a session.
func (c *Client) UpdateSession(ctx context.Context, id string, change SessionChange) (Session, error) {
	body := make(map[string]any)
	for name, value := range map[string]string{"title": change.Title, "user": change.User} {
		if value != "" {
			body[name] = value
		}
	}
	if change.Metadata != nil {
		body["metadata"] = change.Metadata
	}
	out, err := callJSON[struct{ Data Session }](ctx, c, http.MethodPatch, c.workspaceURL("sessions", url.PathEscape(id)), body)
	return out.Data, err
}

// Fork makes a session that continues the history of another one up to an event; 0 means its newest
// event. The history ends with the turns that had ended by then.
func (c *Client) Fork(ctx context.Context, session string, seq int64) (Session, error) {
	body := make(map[string]any)
	if seq > 0 {
		body["seq"] = seq
	}
	out, err := callJSON[struct{ Data Session }](ctx, c, http.MethodPost, c.workspaceURL("sessions", url.PathEscape(session), "fork"), body)
	return out.Data, err
}

// Erased is the result of DeleteSession.
type Erased struct {
	SessionID string    `json:"session_id"`
	ErasedAt  time.Time `json:"erased_at"`
	Already   bool      `json:"already_erased"` // it was erased before
}

// DeleteSession erases the content of a session.
func (c *Client) DeleteSession(ctx context.Context, id string) (Erased, error) {
	out, err := callJSON[struct{ Data Erased }](ctx, c, http.MethodDelete, c.workspaceURL("sessions", url.PathEscape(id)), nil)
	return out.Data, err
}

// HistoryMessage is one message of a session.
type HistoryMessage struct {
	MessageID        string          `json:"message_id"`
	TurnID           string          `json:"turn_id"`
	Role             string          `json:"role"` // user, assistant
	Content          *string         `json:"content"`
	Label            string          `json:"label"`  // shown instead of the content of a message that called a skill
	Status           string          `json:"status"` // completed, in_progress, failed, canceled
	StructuredResult json.RawMessage `json:"structured_result"`
	ToolCalls        []ToolCall      `json:"tool_calls"`
	Attachments      []OutputFile    `json:"attachments"`
	References       json.RawMessage `json:"references"`
	Usage            *TurnUsage      `json:"usage"`
	Error            *string         `json:"error"`
	FirstSeq         int64           `json:"first_seq"`
	LastSeq          int64           `json:"last_seq"`
	CreatedAt        time.Time       `json:"created_at"`
	Erased           bool            `json:"erased"`         // its content is deleted
	Expired          bool            `json:"expired"`        // events that it needs are past their retention
	InheritedFrom    string          `json:"inherited_from"` // the session that a fork has it from; "": its own
	// Raw is the message as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps Raw.
func (m *HistoryMessage) UnmarshalJSON(text []byte) error {
	type plain HistoryMessage
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	m.Raw = bytes.Clone(text)
	return nil
}

// ToolCall is a tool call of the turn that wrote a message.
type ToolCall struct {
	Tool      string `json:"tool"`
	Summary   string `json:"summary"`
	OK        *bool  `json:"ok"` // nil without a result
	ToolUseID string `json:"tool_use_id"`
	Truncated bool   `json:"truncated"`
}

// Messages lists a session's messages, oldest first. Limit 0 means the server's default.
func (c *Client) Messages(ctx context.Context, session string, limit int, cursor string) (Page[HistoryMessage], error) {
	return c.messages(ctx, session, limit, map[string]string{"cursor": cursor})
}

// MessagesAsOf lists a session's messages as they were after the event seq.
func (c *Client) MessagesAsOf(ctx context.Context, session string, seq int64, limit int, cursor string) (Page[HistoryMessage], error) {
	return c.messages(ctx, session, limit, map[string]string{"cursor": cursor, "as_of_seq": strconv.FormatInt(seq, 10)})
}

func (c *Client) messages(ctx context.Context, session string, limit int, params map[string]string) (Page[HistoryMessage], error) {
	u := c.workspaceURL("sessions", url.PathEscape(session), "messages")
	return callJSON[Page[HistoryMessage]](ctx, c, http.MethodGet, withQuery(u, limit, params), nil)
}

// AllMessages lists the messages of all pages.
func (c *Client) AllMessages(ctx context.Context, session string) ([]HistoryMessage, error) {
	return allPages(func(cursor string) (Page[HistoryMessage], error) { return c.Messages(ctx, session, maxPage, cursor) })
}

// AllMessagesAsOf lists the messages of all pages as they were after the event seq.
func (c *Client) AllMessagesAsOf(ctx context.Context, session string, seq int64) ([]HistoryMessage, error) {
	return allPages(func(cursor string) (Page[HistoryMessage], error) {
		return c.MessagesAsOf(ctx, session, seq, maxPage, cursor)
	})
}

// allPages returns the items of all pages.
func allPages[T any](list func(cursor string) (Page[T], error)) (all []T, err error) {
	for page := (Page[T]{HasMore: true}); page.HasMore; all = append(all, page.Data...) {
		if page, err = list(page.NextCursor); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// maxPage is the largest page of the server.
const maxPage = 100

// Ready returns nil if the server is ready. It needs no key.
func (c *Client) Ready(ctx context.Context) error {
	req, err := c.newRequest(ctx, http.MethodGet, c.base.JoinPath("readyz"), nil)
	if err != nil {
		return err
	}
	req.Header.Del("Authorization")
	answer, err := c.doRequest(req)
	if err != nil {
		return err
	}
	var state struct{ Status string }
	if json.Unmarshal(answer, &state) != nil || state.Status != "ok" {
		return foreignError(req.URL, http.StatusOK, answer)
	}
	return nil
}

func withQuery(u *url.URL, limit int, params map[string]string) *url.URL {
	q := u.Query()
	for name, value := range params {
		if value != "" {
			q.Set(name, value)
		}
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	u.RawQuery = q.Encode()
	return u
}
