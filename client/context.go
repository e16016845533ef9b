package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// SentContext is a request to the model, rebuilt from the log. Raw has all its members.
type SentContext struct {
	TurnID         string      `json:"turn_id"`
	Step           int         `json:"step"`
	Agent          string      `json:"agent"`
	Model          string      `json:"model"`
	RequestID      string      `json:"request_id"`
	RecordedSHA256 string      `json:"recorded_sha256"` // "": the reply is of an earlier release
	RebuiltSHA256  string      `json:"rebuilt_sha256"`
	Matches        bool        `json:"matches"`
	HistoryErased  bool        `json:"history_erased"` // it differs, and a session that this one was forked from was erased
	Usage          Usage       `json:"usage"`
	Request        SentRequest `json:"request"`

	Raw json.RawMessage `json:"-"` // the response as the server sent it
}

// SentRequest is what a model received.
type SentRequest struct {
	System string `json:"system"`
	Tools  []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role  string `json:"role"`
		Text  string `json:"text"`
		Calls []struct {
			Tool  string          `json:"tool"`
			Input json.RawMessage `json:"input"`
		} `json:"calls"`
		CallID string `json:"call_id"`
		Files  []struct {
			Name  string `json:"name"`
			MIME  string `json:"mime"`
			Bytes int    `json:"bytes"`
			Text  string `json:"text"` // extracted from a file
		} `json:"files"`
	} `json:"messages"`
	Partial    string `json:"partial"`
	Parameters struct {
		Effort string `json:"effort"`
	} `json:"parameters"`
}

// Context rebuilds the request of a step of a session's turn. Both are numbers from 1; 0 means the
// newest.
func (c *Client) Context(ctx context.Context, session string, turn, step int) (out SentContext, err error) {
	query := map[string]string{}
	for name, n := range map[string]int{"turn": turn, "step": step} {
		if n > 0 {
			query[name] = strconv.Itoa(n)
		}
	}
	u := withQuery(c.workspaceURL("sessions", url.PathEscape(session), "context"), 0, query)
	raw, err := callJSON[struct{ Data json.RawMessage }](ctx, c, http.MethodGet, u, nil)
	if err != nil {
		return out, err
	}
	if json.Unmarshal(raw.Data, &out) != nil {
		return out, foreignError(u, http.StatusOK, raw.Data)
	}
	out.Raw = raw.Data
	return out, nil
}
