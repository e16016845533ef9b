package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// ContextView is a request to a model, rebuilt from the log.
type ContextView struct {
	TurnID       uuid.UUID           `json:"turn_id"`
	Step         int                 `json:"step"`
	Agent        string              `json:"agent"`
	AgentVersion *event.AgentVersion `json:"agent_version"`
	Model        string              `json:"model"`
	RequestID    *string             `json:"request_id"`
	Recorded     *string             `json:"recorded_sha256"`
	Rebuilt      string              `json:"rebuilt_sha256"`
	Matches      bool                `json:"matches"`
	Erased       bool                `json:"history_erased"`
	Sent         *event.Sent         `json:"sent"`
	Usage        event.Usage         `json:"usage"`
	Compacted    *event.Compacted    `json:"compacted"`
	Request      sentRequest         `json:"request"`
}

// sentRequest is a request with the hashes of its binary parts.
type sentRequest struct {
	System     string          `json:"system"`
	Tools      []sentTool      `json:"tools"`
	Messages   []sentMessage   `json:"messages"`
	Partial    string          `json:"partial,omitempty"`
	Schema     json.RawMessage `json:"output_schema,omitempty"`
	Parameters sentParameters  `json:"parameters"`
}

type sentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

type sentMessage struct {
	Role      model.Role       `json:"role"`
	Text      string           `json:"text"`
	Calls     []event.ToolCall `json:"calls,omitempty"`
	CallID    string           `json:"call_id,omitempty"`
	Failed    bool             `json:"failed,omitempty"`
	Files     []sentFile       `json:"files,omitempty"`
	Reasoning []sentFile       `json:"reasoning,omitempty"`
}

// sentFile is a part of a message. Its bytes are not shown.
type sentFile struct {
	Name   string `json:"name,omitempty"`
	MIME   string `json:"mime,omitempty"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text,omitempty"` // extracted from a file
}

type sentParameters struct {
	model.Options
	MaxTokens int    `json:"max_tokens,omitempty"`
	Effort    string `json:"effort,omitempty"`
	MustCall  bool   `json:"must_call,omitempty"`
	OneCall   bool   `json:"one_call,omitempty"`
}

// Matches reports whether the request is the one that was sent.
func (c Context) Matches() bool { return c.SHA256 == c.Reply.PromptSHA256 }

// View returns a request for auditors.
func (c Context) View() ContextView {
	out := ContextView{TurnID: c.Turn.ID, Step: c.Step, Agent: c.Turn.Agent, AgentVersion: c.Reply.AgentVersion, Model: c.Reply.Usage.Model,
		Rebuilt: c.SHA256, Matches: c.Matches(), Erased: c.HistoryErased, Sent: c.Reply.Sent, Usage: c.Reply.Usage, Compacted: c.Compacted}
	if c.Reply.RequestID != "" {
		out.RequestID = &c.Reply.RequestID
	}
	if c.Reply.PromptSHA256 != "" {
		out.Recorded = &c.Reply.PromptSHA256
	}
	req := c.Request
	out.Request = sentRequest{System: req.System, Partial: req.Partial, Tools: []sentTool{},
		Parameters: sentParameters{req.Options, req.MaxTokens, req.Effort, req.MustCall, req.OneCall}}
	for _, t := range req.Tools {
		out.Request.Tools = append(out.Request.Tools, sentTool(t))
	}
	if req.Output != nil {
		out.Request.Schema = req.Output.Schema
	}
	for _, m := range req.Messages {
		out.Request.Messages = append(out.Request.Messages, viewOf(m))
	}
	return out
}

func viewOf(m model.Message) sentMessage {
	out := sentMessage{Role: m.Role, Text: m.Text, Calls: m.Calls, CallID: m.CallID, Failed: m.Failed}
	for _, image := range m.Images {
		out.Files = append(out.Files, digestOf("", image.MIME, image.Data))
	}
	for _, f := range m.Files {
		out.Files = append(out.Files, digestOf(f.Name, f.MIME, f.Data))
		if f.Text != "" {
			text := digestOf(f.Name, "text/plain", []byte(f.Text))
			text.Text = f.Text
			out.Files = append(out.Files, text)
		}
	}
	for _, item := range m.Reasoning {
		out.Reasoning = append(out.Reasoning, digestOf(item.Provider, "", item.Data))
	}
	return out
}

func digestOf(name, mime string, data []byte) sentFile {
	sum := sha256.Sum256(data)
	return sentFile{Name: name, MIME: mime, Bytes: len(data), SHA256: hex.EncodeToString(sum[:])}
}
