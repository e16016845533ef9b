package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// CallerTool is a tool of the caller: the agent may call it while it answers the message.
type CallerTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // JSON Schema of an object; nil: no input
	// Call runs a call. Send posts its result as JSON, a string unchanged; an error is for the
	// agent. Calls of one step run at the same time. If Call is nil, the caller of Send posts the
	// result with PostToolResults.
	Call func(ctx context.Context, input json.RawMessage) (any, error) `json:"-"`
}

// ToolRequired reports that the turn waits for results of the caller's tools. Respond with
// Client.PostToolResults; Send does so for tools with a Call.
type ToolRequired struct {
	ApprovalID string        `json:"approval_id"` // id of the wait
	Calls      []PendingCall `json:"calls"`
	ReplyURL   string        `json:"reply_url"`
	ExpiresAt  time.Time     `json:"expires_at"`
}

// PendingCall is a call that waits for its result.
type PendingCall struct {
	ToolUseID string          `json:"tool_use_id"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
}

// ToolOutput is the result of a call: Output, or Error, the reason why there is none.
type ToolOutput struct {
	ToolUseID string `json:"tool_use_id"`
	Output    any    `json:"output,omitempty"`
	Error     string `json:"error,omitempty"`
}

// PostedResults is the state of a turn after results were posted.
type PostedResults struct {
	SessionID string   `json:"session_id"`
	TurnID    string   `json:"turn_id"`
	Accepted  []string `json:"accepted"` // calls whose results are new
	Pending   []string `json:"pending"`  // calls for whose results the turn still waits
	EventsURL string   `json:"events_url"`
}

// PostToolResults posts results of calls of the caller's tools, all or none. The first result of a
// call stands, so a repeat changes nothing.
func (c *Client) PostToolResults(ctx context.Context, session string, results []ToolOutput) (PostedResults, error) {
	out, err := callJSON[struct{ Data PostedResults }](ctx, c, http.MethodPost,
		c.workspaceURL("sessions", url.PathEscape(session), "tool-results"), map[string]any{"results": results})
	return out.Data, err
}

// toolRunner runs the tools of a message while its frames are read.
type toolRunner struct {
	c     *Client
	s     *stream
	tools map[string]CallerTool // those with a Call
}

// runTools returns the frames of a message, and runs its tools where the turn requires them.
func (c *Client) runTools(ctx context.Context, s *stream, m Message) iter.Seq2[Frame, error] {
	r := toolRunner{c: c, s: s, tools: make(map[string]CallerTool)}
	for _, t := range m.Tools {
		if t.Call != nil {
			r.tools[t.Name] = t
		}
	}
	if len(r.tools) == 0 {
		return s.allFrames(ctx)
	}
	return func(yield func(Frame, error) bool) {
		for f, err := range s.allFrames(ctx) {
			if !yield(f, err) || err != nil {
				return
			}
			if f.Event != KindToolRequired {
				continue
			}
			if err := r.answer(ctx, f); err != nil {
				yield(Frame{}, err)
				return
			}
		}
	}
}

// answer runs the calls of a frame and posts their results.
func (r *toolRunner) answer(ctx context.Context, f Frame) error {
	required, err := decodeBody[ToolRequired](f.Data)
	if err != nil {
		return err
	}
	q := required.(ToolRequired)
	if r.s.replayed && !r.isPending(ctx, q.ApprovalID) { // another process has answered
		return nil
	}
	results := make([]ToolOutput, 0, len(q.Calls))
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, call := range q.Calls {
		if t, ok := r.tools[call.Tool]; ok {
			running.Go(func() {
				res := t.run(ctx, call)
				mu.Lock()
				defer mu.Unlock()
				results = append(results, res)
			})
		}
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(results) == 0 {
		return nil
	}
	return r.post(ctx, results)
}

// isPending reports whether the turn may still wait. A key that cannot read it cannot know.
func (r *toolRunner) isPending(ctx context.Context, wait string) bool {
	a, err := r.c.Approval(ctx, wait)
	return err != nil || a.Status == "pending"
}

// run runs one call.
func (t CallerTool) run(ctx context.Context, call PendingCall) ToolOutput {
	out := ToolOutput{ToolUseID: call.ToolUseID}
	value, err := t.Call(ctx, call.Input)
	if err == nil {
		var raw json.RawMessage
		if raw, err = json.Marshal(value); err == nil {
			if out.Output = raw; string(raw) == "null" {
				out.Output = ""
			}
			return out
		}
	}
	if out.Error = err.Error(); out.Error == "" {
		out.Error = "The tool failed."
	}
	return out
}

// post posts results until the server has them. The stream reports the end of a
// turn that no longer takes them.
func (r *toolRunner) post(ctx context.Context, results []ToolOutput) error {
	p := pacer{c: r.c}
	for {
		_, err := r.c.PostToolResults(ctx, r.s.session, results)
		if e, ok := errors.AsType[*Error](err); err == nil || ok && (e.Status == http.StatusConflict || e.Status == http.StatusGone) {
			return nil
		}
		if err := p.waitAttempt(ctx, err); err != nil {
			return fmt.Errorf("post the results of tools: %w", err)
		}
	}
}
