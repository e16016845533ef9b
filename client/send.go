package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"
)

// Send sends a message and yields the frames of the answer; the last one is done. If the connection
// drops, Send resumes after the last frame. At input_required the stream waits with its turn until
// the approval is decided. At tool_required Send runs the tools of the message. Leaving the loop does
// not end the turn on the server. The error is an *Error, an *Unreachable, a *Broken or the context's.
func (c *Client) Send(ctx context.Context, m Message) iter.Seq2[Frame, error] {
	body, err := m.encodeBody(true)
	key := keyOf(m)
	s := &stream{c: c, attach: func(ctx context.Context, lastID string) (*http.Request, error) {
		if err != nil {
			return nil, fmt.Errorf("encode message: %w", err)
		}
		req, err := c.newRequest(ctx, http.MethodPost, c.workspaceURL("messages"), body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream, application/json")
		req.Header.Set("Idempotency-Key", key)
		if lastID != "" { // the message is repeated: its turn continues from here
			req.Header.Set("Last-Event-ID", lastID)
		}
		return req, nil
	}}
	return c.runTools(ctx, s, m)
}

// Answer is the complete answer to a message.
type Answer struct {
	Success          bool            `json:"success"`
	Output           *string         `json:"output"`
	SessionID        string          `json:"session_id"`
	Agent            string          `json:"agent,omitempty"`
	AgentVersion     json.RawMessage `json:"agent_version,omitempty"` // a number, or "draft"
	StructuredResult json.RawMessage `json:"structured_result,omitempty"`
	References       json.RawMessage `json:"references,omitempty"`
	Attachments      []OutputFile    `json:"attachments,omitempty"`
	Rejected         json.RawMessage `json:"rejected_attachments,omitempty"`
	Error            *string         `json:"error"`
	// InputRequired is the approval or secret that the turn waits for, if Error is
	// input_required. The turn keeps waiting.
	InputRequired json.RawMessage `json:"input_required,omitempty"`
	// ToolRequired are the calls of the caller's tools that the turn waits for, if Error is
	// tool_required: post their results and Follow the session.
	ToolRequired *ToolRequired `json:"tool_required,omitempty"`
	// ConnectRequired is the link that the turn waits for, if Error is connect_required. The turn
	// keeps waiting.
	ConnectRequired *ConnectRequired `json:"connect_required,omitempty"`

	Raw json.RawMessage `json:"-"` // the whole response, unchanged
}

// Ask sends a message and waits for the complete answer.
func (c *Client) Ask(ctx context.Context, m Message) (Answer, error) {
	raw, err := c.postMessage(ctx, m)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Raw: raw}
	if json.Unmarshal(raw, &a) != nil || a.SessionID == "" {
		return a, foreignError(c.workspaceURL("messages"), http.StatusOK, raw)
	}
	return a, nil
}

// Queued is a message whose result a callback will report.
type Queued struct {
	SessionID  string `json:"session_id"`
	TurnID     string `json:"turn_id"`
	CallbackID string `json:"callback_id"`
	Status     string `json:"status"`
	EventsURL  string `json:"events_url"`
	CancelURL  string `json:"cancel_url"`

	Raw json.RawMessage `json:"-"` // the whole response, unchanged
}

// Submit sends a message with a Callback and returns without waiting for the answer.
func (c *Client) Submit(ctx context.Context, m Message) (Queued, error) {
	raw, err := c.postMessage(ctx, m)
	if err != nil {
		return Queued{}, err
	}
	var out struct{ Data Queued }
	if json.Unmarshal(raw, &out) != nil || out.Data.SessionID == "" {
		return Queued{}, foreignError(c.workspaceURL("messages"), http.StatusOK, raw)
	}
	out.Data.Raw = raw
	return out.Data, nil
}

// postMessage sends a message without a stream, and repeats it under the same key until its result
// is known.
func (c *Client) postMessage(ctx context.Context, m Message) (json.RawMessage, error) {
	body, err := m.encodeBody(false)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	key := keyOf(m)
	p := pacer{c: c}
	for {
		req, err := c.newRequest(ctx, http.MethodPost, c.workspaceURL("messages"), body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Idempotency-Key", key)
		began := time.Now()
		raw, err := c.doRequest(req)
		if err == nil {
			return raw, nil
		}
		if time.Since(began) > longWait {
			p.tries = 0 // a proxy timed out; the turn is still running
		}
		if !p.started && !mayHaveArrived(err) {
			return nil, err
		}
		if err := p.waitAttempt(ctx, err); err != nil {
			return nil, err
		}
	}
}

// longWait is longer than any connection attempt that never reached the server.
const longWait = 30 * time.Second

// mayHaveArrived reports whether the first attempt may have reached the server. Only the same
// message under the same key finds out.
func mayHaveArrived(err error) bool {
	if e, ok := errors.AsType[*Unreachable](err); ok {
		return e.Sent
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout
	}
	return false
}

func keyOf(m Message) string {
	if m.IdempotencyKey != "" {
		return m.IdempotencyKey
	}
	return rand.Text()
}
