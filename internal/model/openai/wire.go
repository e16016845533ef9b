package openai

import (
	"encoding/json"
	"strconv"
	"strings"
)

// chatRequest is the body of POST /chat/completions.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages,omitempty"`
	Tools               []functionTool  `json:"tools,omitempty"`
	ToolChoice          any             `json:"tool_choice,omitempty"` // *functionTool, or "required"
	ParallelToolCalls   *bool           `json:"parallel_tool_calls,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	Seed                *int64          `json:"seed,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	PromptCacheKey      string          `json:"prompt_cache_key,omitempty"`
	Stream              bool            `json:"stream"`
	StreamOptions       streamOptions   `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    any            `json:"content,omitempty"` // a string, []contentPart or nothing
	ToolCalls  []functionCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
}

type contentPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// functionCall is a call in the history.
type functionCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// functionTool offers a function to the model, or names the one that the model has to call.
type functionTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description,omitempty"`
	Parameters  map[string]json.RawMessage `json:"parameters,omitzero"` // raw: numbers are not rounded
}

type responseFormat struct {
	Type       string       `json:"type"`
	JSONSchema outputSchema `json:"json_schema"`
}

type outputSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// chatChunk is one event of the stream.
type chatChunk struct {
	Choices []chunkChoice   `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Model   looseString     `json:"model"`
	Error   json.RawMessage `json:"error"` // present when the reply failed
}

type chunkChoice struct {
	Index        looseInt    `json:"index"`
	Delta        chunkDelta  `json:"delta"`
	FinishReason looseString `json:"finish_reason"`
}

type chunkDelta struct {
	Content   looseString `json:"content"`
	Refusal   looseString `json:"refusal"`
	ToolCalls []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    looseInt    `json:"index"`
	ID       looseString `json:"id"`
	Function struct {
		Name      looseString `json:"name"`
		Arguments looseString `json:"arguments"`
	} `json:"function"`
}

type chunkUsage struct {
	PromptTokens        looseInt `json:"prompt_tokens"`
	CompletionTokens    looseInt `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens looseInt `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// looseString is a string, or the JSON text of another value: some servers send
// arguments as an object and ids as numbers.
type looseString string

// UnmarshalJSON implements json.Unmarshaler.
func (s *looseString) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if data[0] != '"' {
		*s = looseString(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(s))
}

// looseInt is a number, also one in a string; other values are 0.
type looseInt int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *looseInt) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil {
		*n = looseInt(f)
	}
	return nil
}
