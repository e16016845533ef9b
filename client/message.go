package client

import "encoding/json"

// Message is what is said to the workspace's agent: a command, or a skill with its
// inputs.
type Message struct {
	Command     string   `json:"command,omitempty"`
	Skill       string   `json:"skill,omitempty"`
	Input       Input    `json:"input,omitempty"`
	SecretInput []string `json:"secret_input,omitempty"` // names of credentials that the turn may use
	SessionID   string   `json:"session_id,omitempty"`   // goes on with this session
	CallerID    string   `json:"caller_id,omitempty"`    // goes on with this caller's session
	// ResponseSchema is a JSON Schema; the final answer fits it, and comes as the
	// frame structured.
	ResponseSchema json.RawMessage `json:"response_schema,omitempty"`
	Attachments    []Attached      `json:"attachments,omitempty"`
	Callback       *Receiver       `json:"callback,omitempty"`
	// MultitaskStrategy says what becomes of the message while the session answers
	// another: reject, enqueue or interrupt. The server's default is reject.
	MultitaskStrategy string  `json:"multitask_strategy,omitempty"`
	Limits            *Limits `json:"limits,omitempty"`

	// IdempotencyKey names the message: sent again under the same key it is the
	// same message. Without it one is drawn for each call.
	IdempotencyKey string `json:"-"`
}

// Input are the values for a skill by their names, each as JSON.
type Input map[string]json.RawMessage

// Attached names a file that was sent in before.
type Attached struct {
	FileID string `json:"file_id"`
}

// Receiver is where a callback goes. Metadata comes back with every report.
type Receiver struct {
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Limits may lower the workspace's own. Zero values leave them.
type Limits struct {
	MaxResponseSeconds int      `json:"max_response_seconds,omitempty"`
	MaxTurns           int      `json:"max_turns,omitempty"`
	MaxCostUSD         *float64 `json:"max_cost_usd,omitempty"`
}

// body is a message as it is sent. A stream is the default, but where there is a
// callback.
func (m Message) body(stream bool) ([]byte, error) {
	wish := &stream
	if stream && m.Callback == nil {
		wish = nil
	}
	return json.Marshal(struct {
		Message
		Stream *bool `json:"stream,omitempty"`
	}{m, wish})
}
