// Package event says what can happen in a session: the kinds, their bodies and
// their JSON. A row of the log and a frame of a stream are the same value: the
// bytes that Encode makes are stored, replayed and sent without being touched
// again.
package event

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Version is the schema version that every public body except open carries as "v".
const Version = 1

// Kind names what happened. New kinds are added; old kinds keep their meaning.
type Kind string

// The kinds a stream carries, in the words of the public API.
const (
	KindOpen          Kind = "open"
	KindText          Kind = "text"
	KindToolUse       Kind = "tool_use"
	KindToolResult    Kind = "tool_result"
	KindInputRequired Kind = "input_required"
	KindUsage         Kind = "usage"
	KindStructured    Kind = "structured"
	KindAttachment    Kind = "attachment"
	KindError         Kind = "error"
	KindDone          Kind = "done"
)

// The internal kinds: they make a turn resumable and auditable, stay in the log
// and never reach a stream.
const (
	KindMessage    Kind = "message"     // the user's message
	KindStarted    Kind = "started"     // a worker took the turn
	KindReply      Kind = "reply"       // the model's whole reply of one step
	KindToolOutput Kind = "tool_output" // what the model reads when tool_result was cut
	KindReference  Kind = "reference"   // a knowledge document was read
	KindDecision   Kind = "decision"    // an approval or a secret request was answered
)

// Public reports whether events of this kind are sent to readers.
func (k Kind) Public() bool {
	switch k {
	case KindMessage, KindStarted, KindReply, KindToolOutput, KindReference, KindDecision:
		return false
	}
	return true
}

// Event is one committed row of a session's log.
type Event struct {
	Seq     int64     // position in the log of the whole database: the reader's cursor
	Ord     int64     // position in the session, without gaps, from 1
	Session uuid.UUID // whose log
	Turn    uuid.UUID // which turn wrote it
	At      time.Time // PostgreSQL's clock
	Kind    Kind
	Data    []byte // compact JSON on one line: exactly the bytes that are sent
}

// Body is what an event says. The set of bodies is closed: only this package
// implements it.
type Body interface{ Kind() Kind }

// Open tells the reader which session this stream belongs to. FromSeq is only
// set when a stream is resumed.
type Open struct {
	SessionID uuid.UUID `json:"session_id"`
	FromSeq   *int64    `json:"from_seq,omitempty"`
}

// Text is a piece of the answer, to be appended to what came before.
type Text struct {
	Text string `json:"text"`
}

// ToolUse says that a tool call begins. It is committed before the tool runs.
type ToolUse struct {
	Tool      string `json:"tool"`
	Summary   string `json:"summary"`
	ToolUseID string `json:"tool_use_id,omitempty"`
}

// ToolResult is the outcome of a tool call; Output has at most OutputLimit characters.
type ToolResult struct {
	Tool      string `json:"tool"`
	OK        bool   `json:"ok"`
	Output    string `json:"output"`
	Truncated bool   `json:"truncated,omitempty"`
	ToolUseID string `json:"tool_use_id,omitempty"`
}

// Usage reports tokens and cost of one turn. CostUSD is nil for models without a
// known price.
type Usage struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
	Model        string   `json:"model"`
}

// Error ends a turn that failed. It is always followed by Done.
type Error struct {
	Code        Code   `json:"code"`
	Message     string `json:"message"`
	Recoverable bool   `json:"recoverable"`
}

// Done is the last event of a turn. Resumed is set on streams that were attached
// to a session after the fact.
type Done struct {
	SessionID uuid.UUID `json:"session_id"`
	Resumed   *bool     `json:"resumed,omitempty"`
}

// Message is what the user sent. Label is what people see instead of the content
// when a skill was called.
type Message struct {
	Content string `json:"content"`
	Label   string `json:"label,omitempty"`
}

// Started records which attempt of a turn runs on which node.
type Started struct {
	Epoch int64  `json:"epoch"`
	Node  string `json:"node"`
}

// Reply is everything the model answered in one step. With it a turn can be
// rebuilt after a crash or a pause.
type Reply struct {
	Text  string     `json:"text,omitempty"`
	Calls []ToolCall `json:"calls,omitempty"`
	Usage Usage      `json:"usage"`
}

// ToolCall is a tool call as the model asked for it. Input is a JSON object.
type ToolCall struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
}

// ToolOutput is the output of a tool beyond what ToolResult shows, for the model.
type ToolOutput struct {
	ToolUseID string `json:"tool_use_id"`
	Output    string `json:"output"`
}

// Reference names a knowledge document that the agent read. Source is wiki_read,
// read or grep.
type Reference struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

func (Open) Kind() Kind       { return KindOpen }
func (Text) Kind() Kind       { return KindText }
func (ToolUse) Kind() Kind    { return KindToolUse }
func (ToolResult) Kind() Kind { return KindToolResult }
func (Usage) Kind() Kind      { return KindUsage }
func (Error) Kind() Kind      { return KindError }
func (Done) Kind() Kind       { return KindDone }
func (Message) Kind() Kind    { return KindMessage }
func (Started) Kind() Kind    { return KindStarted }
func (Reply) Kind() Kind      { return KindReply }
func (ToolOutput) Kind() Kind { return KindToolOutput }
func (Reference) Kind() Kind  { return KindReference }
