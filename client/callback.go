package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Delivery is a report to one of the workspace's callbacks, in the list of deliveries.
type Delivery struct {
	CallbackID  string     `json:"callback_id"`
	WebhookID   string     `json:"webhook_id"`
	TurnID      string     `json:"turn_id"`
	Type        string     `json:"type"`
	Status      string     `json:"status"` // pending, delivered, failed
	URL         string     `json:"url"`
	LastAttempt *Attempt   `json:"last_attempt"`
	NextAt      *time.Time `json:"next_attempt_at"`
	CreatedAt   time.Time  `json:"created_at"`
}

// Attempt is one attempt at a delivery.
type Attempt struct {
	N         int       `json:"n"`
	At        time.Time `json:"at"`
	Status    int       `json:"status"` // 0 if there was no response
	LatencyMS int       `json:"latency_ms"`
	Error     string    `json:"error"` // "" if it was delivered
}

// DeliveryQuery filters the list of deliveries. The zero value lists all, newest first.
type DeliveryQuery struct {
	Status string
	Limit  int
	Cursor string
}

// Deliveries lists the reports of the workspace's callbacks.
func (c *Client) Deliveries(ctx context.Context, q DeliveryQuery) (Page[Delivery], error) {
	return callJSON[Page[Delivery]](ctx, c, http.MethodGet, withQuery(c.workspaceURL("callbacks"), q.Limit, map[string]string{
		"status": q.Status, "cursor": q.Cursor,
	}), nil)
}

// Callback is the callback of a turn with its deliveries.
type Callback struct {
	CallbackID string            `json:"callback_id"`
	SessionID  string            `json:"session_id"`
	TurnID     string            `json:"turn_id"`
	URL        string            `json:"url"`
	Metadata   map[string]string `json:"metadata"`
	Status     string            `json:"status"` // waiting, pending, delivered, failed
	Disabled   bool              `json:"disabled"`
	Deliveries []struct {
		WebhookID string          `json:"webhook_id"`
		Type      string          `json:"type"`
		Seq       int64           `json:"seq"`
		Status    string          `json:"status"`
		Payload   json.RawMessage `json:"payload"`
		Attempts  []Attempt       `json:"attempts"`
		NextAt    *time.Time      `json:"next_attempt_at"`
	} `json:"deliveries"`
	CreatedAt time.Time `json:"created_at"`
	// Raw is the response as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Callback returns a callback.
func (c *Client) Callback(ctx context.Context, id string) (Callback, error) {
	u := c.workspaceURL("callbacks", url.PathEscape(id))
	raw, err := callJSON[json.RawMessage](ctx, c, http.MethodGet, u, nil)
	if err != nil {
		return Callback{}, err
	}
	var out struct{ Data Callback }
	if json.Unmarshal(raw, &out) != nil {
		return Callback{}, foreignError(u, http.StatusOK, raw)
	}
	out.Data.Raw = bytes.Clone(raw)
	return out.Data, nil
}

// Redelivery is the result of Redeliver. A callback without reports is not an error.
type Redelivery struct {
	Redelivering bool   `json:"redelivering"`
	WebhookID    string `json:"webhook_id"`
	Reason       string `json:"reason"`
}

// Redeliver sends the newest report of a callback once more.
func (c *Client) Redeliver(ctx context.Context, id string) (Redelivery, error) {
	out, err := callJSON[struct{ Data Redelivery }](ctx, c, http.MethodPost, c.workspaceURL("callbacks", url.PathEscape(id), "redeliver"), nil)
	return out.Data, err
}
