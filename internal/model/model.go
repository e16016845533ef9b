// Package model is the port to language models. Its sub-packages implement one protocol each;
// nothing else in Parley depends on a provider.
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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

// Embedder turns texts into vectors. Texts about the same subject have vectors with a small angle
// between them, whatever their words.
type Embedder interface {
	// Name returns the full name. Vectors of models with different names cannot be compared.
	Name() string
	// Embed returns a vector for each text, all of the same size, and the tokens of the texts. It fails
	// with an *Error.
	Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int64, err error)
}

// Canceler is a Model whose responses continue at the provider after their reader has left.
type Canceler interface {
	// CancelResponse ends a response, by its Chunk.Response.
	CancelResponse(ctx context.Context, id string) error
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
	// Summaries requests summaries of the reasoning, as Chunk.Summary.
	Summaries bool
	// Resume is the id of a response to this request: the reply is read again from its beginning, and
	// no other is requested. "": a new response. See Chunk.Response.
	Resume string
	// CacheKey is the same for requests that share a beginning, such as those of one session. It helps
	// a provider to find that beginning in its cache; "": no hint.
	CacheKey string
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
	Files  []File           // user only
	Calls  []event.ToolCall // assistant only
	CallID string           // tool only
	Failed bool             // tool only: the call did not succeed
	// Reasoning is of an assistant's reply in the same turn. Models that did not write it ignore it.
	Reasoning []Reasoning
}

// Reasoning is an opaque item of a model's reasoning. It returns unchanged to the model that wrote
// it, and is never shown.
type Reasoning struct {
	Provider string          `json:"provider"` // full name of the model
	Data     json.RawMessage `json:"data"`
}

// Image is a picture that the user attached.
type Image struct {
	MIME string // image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// File is a document that the user attached. A provider without support for it sends its text instead.
type File struct {
	Name string
	MIME string // application/pdf
	Data []byte
	Text string // extracted from Data, or a note in brackets; "": nothing was extracted
}

// WithoutFiles returns a message in which the text of each file, or a note, stands for the file.
func (m Message) WithoutFiles() Message {
	for _, f := range m.Files {
		if f.Text == "" {
			m.Text += fmt.Sprintf("\n\n[The content of %q is not shown, because the model cannot read it.]", f.Name)
			continue
		}
		text, _ := json.Marshal(f.Text) // a string always marshals; as JSON, it cannot end the block
		m.Text += fmt.Sprintf("\n\n<attachment name=%q type=%q note=\"text of the file\">\n%s\n</attachment>", f.Name, f.MIME, text)
	}
	m.Files = nil
	return m
}

// Tool describes a tool to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the input, an object
}

// Chunk is a piece of a reply: text, a part of its reasoning, one complete tool call, or the end.
type Chunk struct {
	Text      string
	Reasoning *Reasoning // to be returned with the reply
	Summary   string     // a piece of a summary of the reasoning; never part of the answer
	Response  string     // on the first chunk: the id with which Request.Resume reads the response again
	Call      *event.ToolCall
	Usage     *Usage // on the last chunk; tokens of this request
	Stop      Stop   // on the last chunk
	RequestID string // on the last chunk: the provider's id of the request, if it has one
	Model     string // on the last chunk: the provider's name of the model that replied, if it gave one
}

// Stop is the reason for the end of a reply.
type Stop string

const (
	StopEnd     Stop = "end"     // the answer is complete
	StopTools   Stop = "tools"   // the model waits for the results of its calls
	StopLength  Stop = "length"  // the reply hit MaxTokens
	StopRefused Stop = "refused" // the provider refused the content
)

// Usage counts the tokens of one request. InputTokens include CachedTokens, which the provider read
// from its cache, and CacheWriteTokens, which it wrote to it.
type Usage struct {
	InputTokens      int64
	CachedTokens     int64
	CacheWriteTokens int64
	OutputTokens     int64
}

// Add adds the tokens of another request.
func (u *Usage) Add(other Usage) {
	u.InputTokens += other.InputTokens
	u.CachedTokens += other.CachedTokens
	u.CacheWriteTokens += other.CacheWriteTokens
	u.OutputTokens += other.OutputTokens
}

// Error is a failure of a provider, mapped to the codes of the public API.
type Error struct {
	Code       event.Code    // ModelError, ModelOverloaded, ContentRefused
	Message    string        // for the end user, who does not know the provider
	Admin      bool          // an administrator must act: a key, a quota, an address, a name
	Hint       string        // for the administrator: what is wrong and what to check; never a secret
	TooLong    bool          // the conversation is longer than the model's context
	Retryable  bool          // the same request can succeed later
	Resumable  bool          // Request.Resume can read the same response again
	Ended      bool          // the provider reported the end of the response, so none continues there
	RetryAfter time.Duration // wait requested by the provider, or zero
	Model      string        // full name of the model
	Status     int           // HTTP status, or 0
	RequestID  string        // the provider's id of the request, or ""
	Err        error
}

// Unavailable is the message for end users of a failure that only an administrator can end.
const Unavailable = "The agent's model is not available. Ask the administrator."

func (e *Error) Error() string { return cmp.Or(e.Hint, e.Message) }
func (e *Error) Unwrap() error { return e.Err }
