// Package model is the port to language models. Its sub-packages implement one protocol each;
// nothing else in Parley depends on a provider.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/parley-server/parley/internal/event"
)

// Model answers a conversation, one step at a time.
type Model interface {
	// Name returns the full name, "openai/gpt-5-mini", which usage reports and prices use.
	Name() string
	// Generate streams one reply. The stream ends after a chunk with Stop set, or with an *Error.
	// Breaking the loop ends the request.
	Generate(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// Request is one step of a conversation.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
	// Partial is the beginning of this reply that was shown to the reader before an interruption.
	// The model continues after it and never repeats it.
	Partial string
	// Output requests a reply that is one JSON value of a schema and nothing else: its chunks of
	// Text are that JSON. Providers that can force such a reply do so, natively or with a tool of
	// their own; others receive an instruction. Tools is empty then.
	Output *Output
	// MaxTokens limits the reply; zero means the provider's own limit or a sane default.
	MaxTokens int
	// Effort is how much a reasoning model thinks: minimal, low, medium or high; "": the model's own.
	// Other models may reject it.
	Effort string
	// Options are the caller's. MaxTokens and Effort above take precedence.
	Options  Options
	MustCall bool // the reply must call a tool
	OneCall  bool // the reply has at most one call
}

// Options are parameters of the model that the caller of a message can choose. Providers ignore
// those that they do not have.
type Options struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Effort      string   `json:"effort,omitempty"`
}

// Output is a JSON Schema that a reply must fit. The caller checks it.
type Output struct {
	Name   string // a word for the provider: letters, digits, _ and -
	Schema json.RawMessage
}

// Role is the author of a Message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // the result of one call, in Text, for CallID
)

// Message is one entry of the conversation.
type Message struct {
	Role   Role
	Text   string
	Images []Image          // user only
	Calls  []event.ToolCall // assistant only
	CallID string           // tool only
	Failed bool             // tool only: the call did not succeed
}

// Image is a picture that the user attached.
type Image struct {
	MIME string // image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// Tool describes a tool to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the input, an object
}

// Chunk is a piece of a reply: text, or one complete tool call, or the end.
type Chunk struct {
	Text  string
	Call  *event.ToolCall
	Usage *Usage // on the last chunk; tokens of this request
	Stop  Stop   // on the last chunk
}

// Stop is the reason for the end of a reply.
type Stop string

const (
	StopEnd     Stop = "end"     // the answer is complete
	StopTools   Stop = "tools"   // the model waits for the results of its calls
	StopLength  Stop = "length"  // the reply hit MaxTokens
	StopRefused Stop = "refused" // the provider refused the content
)

// Usage counts the tokens of one request. CachedTokens are part of InputTokens.
type Usage struct {
	InputTokens  int64
	CachedTokens int64
	OutputTokens int64
}

// Error is a failure of a provider, mapped to the codes of the public API.
type Error struct {
	Code       event.Code    // ModelError, ModelOverloaded, ContentRefused
	Message    string        // safe to show: never a key, a header or a provider's raw body
	Retryable  bool          // the same request can succeed later
	RetryAfter time.Duration // wait requested by the provider, or zero
	Err        error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }
