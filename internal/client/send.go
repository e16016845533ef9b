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

// Message is what is said to the workspace's agent: a command, or a skill with its
// inputs.
type Message struct {
	Command   string  `json:"command,omitempty"`
	Skill     string  `json:"skill,omitempty"`
	Input     Input   `json:"input,omitempty"`
	SessionID string  `json:"session_id,omitempty"` // goes on with this session
	CallerID  string  `json:"caller_id,omitempty"`  // goes on with this caller's session
	Limits    *Limits `json:"limits,omitempty"`

	// IdempotencyKey names the message: sent again under the same key it is the
	// same message. Without it one is drawn for each call.
	IdempotencyKey string `json:"-"`
}

// Input are the values for a skill by their names, each as JSON.
type Input map[string]json.RawMessage

// Limits may lower the workspace's own.
type Limits struct {
	MaxResponseSeconds int `json:"max_response_seconds,omitempty"`
	MaxTurns           int `json:"max_turns,omitempty"`
}

// Send sends a message and yields the frames of the answer, the last of which is
// done. Breaking off the loop leaves the turn running on the server. The error is
// an *Error, an *Unreachable, a *Broken or the context's.
func (c *Client) Send(ctx context.Context, m Message) iter.Seq2[Frame, error] {
	body, err := json.Marshal(m)
	key := keyOf(m)
	s := &stream{c: c, attach: func(ctx context.Context, lastID string) (*http.Request, error) {
		if err != nil {
			return nil, fmt.Errorf("encode message: %w", err)
		}
		req, err := c.request(ctx, http.MethodPost, c.path("messages"), body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream, application/json")
		req.Header.Set("Idempotency-Key", key)
		if lastID != "" { // the same message again: its turn goes on from here
			req.Header.Set("Last-Event-ID", lastID)
		}
		return req, nil
	}}
	return s.frames(ctx)
}

// Answer is the blocking answer to a message.
type Answer struct {
	Success   bool    `json:"success"`
	Output    *string `json:"output"`
	SessionID string  `json:"session_id"`
	Error     *string `json:"error"`

	Raw json.RawMessage `json:"-"` // all of it, as the server wrote it
}

// Ask sends a message and waits for the whole answer.
func (c *Client) Ask(ctx context.Context, m Message) (Answer, error) {
	body, err := json.Marshal(struct {
		Message
		Stream bool `json:"stream"`
	}{m, false})
	if err != nil {
		return Answer{}, fmt.Errorf("encode message: %w", err)
	}
	key := keyOf(m)
	p := pacer{c: c}
	for {
		req, err := c.request(ctx, http.MethodPost, c.path("messages"), body)
		if err != nil {
			return Answer{}, err
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Idempotency-Key", key)
		began := time.Now()
		raw, err := c.do(req)
		if err == nil {
			a := Answer{Raw: raw}
			if err := json.Unmarshal(raw, &a); err != nil {
				return a, fmt.Errorf("read the answer: %w", err)
			}
			return a, nil
		}
		if time.Since(began) > longWait {
			p.tries = 0 // a proxy lost its patience; the turn goes on
		}
		if !p.started && !unsure(err) {
			return Answer{}, err
		}
		if err := p.pause(ctx, err); err != nil {
			return Answer{}, err
		}
	}
}

// longWait is longer than any connection lives that never reached the server.
const longWait = 30 * time.Second

// unsure reports whether the first attempt may have reached the server, so that
// only the same message under the same key can tell.
func unsure(err error) bool {
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
