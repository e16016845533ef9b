package client

import (
	"encoding/json"
	"strconv"
)

// Message is a message to the workspace's agent: a command, or a skill with its inputs.
type Message struct {
	Command string `json:"command,omitempty"`
	Agent   string `json:"agent,omitempty"` // "": the workspace's default agent
	// AgentVersion is a number or "draft"; "": the published one.
	AgentVersion AgentVersion `json:"agent_version,omitempty"`
	Skill        string       `json:"skill,omitempty"`
	Input        Input        `json:"input,omitempty"`
	SecretInput  []string     `json:"secret_input,omitempty"` // names of credentials that the turn may use
	SessionID    string       `json:"session_id,omitempty"`   // continues this session
	CallerID     string       `json:"caller_id,omitempty"`    // continues this caller's session
	// ResponseSchema is a JSON Schema for the final answer, which arrives as a structured
	// frame.
	ResponseSchema json.RawMessage `json:"response_schema,omitempty"`
	Attachments    []Attached      `json:"attachments,omitempty"`
	// Tools are tools of the caller. They belong to this message: set them again in the next one.
	Tools    []CallerTool `json:"tools,omitempty"`
	Callback *Receiver    `json:"callback,omitempty"`
	// MultitaskStrategy decides what happens to a message sent while a turn is running: reject,
	// enqueue or interrupt. The server's default is reject.
	MultitaskStrategy string  `json:"multitask_strategy,omitempty"`
	Limits            *Limits `json:"limits,omitempty"`
	// Effort is how much a model that reasons thinks: minimal, low, medium or high. "": as the agent
	// defines it.
	Effort string `json:"effort,omitempty"`
	// User is the end user who sends the message, and Metadata are pairs to find it by. A message
	// that begins a session gives both to it.
	User     string            `json:"user,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`

	// IdempotencyKey identifies the message: the server runs it once, however often it is sent.
	// Each call draws a key if this is empty.
	IdempotencyKey string `json:"-"`
}

// AgentVersion is a version of an agent: a number in decimal digits, or "draft".
type AgentVersion string

// MarshalJSON encodes a number as one.
func (v AgentVersion) MarshalJSON() ([]byte, error) {
	if n, err := strconv.Atoi(string(v)); err == nil {
		return strconv.AppendInt(nil, int64(n), 10), nil
	}
	return json.Marshal(string(v))
}

// Input holds the inputs of a skill by name, each as JSON.
type Input map[string]json.RawMessage

// Attached names a file that was uploaded before.
type Attached struct {
	FileID string `json:"file_id"`
}

// Receiver is the receiver of a callback. Every report repeats Metadata.
type Receiver struct {
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Limits lower the workspace's limits. Zero values keep them.
type Limits struct {
	MaxResponseSeconds int      `json:"max_response_seconds,omitempty"`
	MaxTurns           int      `json:"max_turns,omitempty"`
	MaxCostUSD         *float64 `json:"max_cost_usd,omitempty"`
}

// encodeBody returns the JSON of a message. A stream is the default, except with a callback.
func (m Message) encodeBody(stream bool) ([]byte, error) {
	wish := &stream
	if stream && m.Callback == nil {
		wish = nil
	}
	return json.Marshal(struct {
		Message
		Stream *bool `json:"stream,omitempty"`
	}{m, wish})
}
