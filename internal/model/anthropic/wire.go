package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/parley-server/parley/internal/sse"
)

// The members of the Messages API that this package uses.

// params is a request.
type params struct {
	Model         string        `json:"model"`
	MaxTokens     int64         `json:"max_tokens"`
	Messages      []message     `json:"messages"`
	System        []block       `json:"system,omitempty"`
	Tools         []toolParam   `json:"tools,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	Thinking      *thinkingMode `json:"thinking,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Stream        bool          `json:"stream"`
}

// The roles of messages. Results of tools are messages of the user.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a part of a message. Its members depend on Type.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Source       *source         `json:"source,omitempty"` // image, document
	Title        string          `json:"title,omitempty"`  // document
	ID           string          `json:"id,omitempty"`     // tool_use
	Name         string          `json:"name,omitempty"`   // tool_use
	Input        json.RawMessage `json:"input,omitempty"`  // tool_use
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Content      []block         `json:"content,omitempty"`  // tool_result
	Thinking     *string         `json:"thinking,omitempty"` // may be empty
	Signature    *string         `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"` // redacted_thinking
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"` // base64
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type toolParam struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type toolChoice struct {
	Type   string `json:"type"` // auto, any or tool
	Name   string `json:"name,omitempty"`
	Single bool   `json:"disable_parallel_tool_use,omitempty"`
}

type thinkingMode struct {
	Type         string `json:"type"` // enabled or adaptive
	BudgetTokens int64  `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type cacheControl struct {
	Type string `json:"type"` // ephemeral
}

// streamEvent is one event of a reply. Its members depend on Type.
type streamEvent struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
}

type usage struct {
	InputTokens              int64 `json:"input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
}

// reportedError is the event with which a server reports that the reply failed.
type reportedError struct{ data []byte }

func (*reportedError) Error() string { return "error event in the stream" }

// nextEvent returns the next event of a reply, or io.EOF at the end of the stream. Fields of the wrong
// type count as absent.
func nextEvent(frames *sse.Reader) (ev streamEvent, err error) {
	frame, err := frames.Next()
	if err != nil {
		return ev, err
	}
	if frame.Event == "error" {
		return ev, &reportedError{bytes.Clone(frame.Data)}
	}
	err = json.Unmarshal(frame.Data, &ev)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		err = nil
	}
	return ev, err
}
