// Package event defines the events of a session: the kinds, their bodies and their JSON. A row of
// the log and a frame of a stream are the same value: the bytes that Encode returns are stored,
// replayed and sent unchanged.
package event

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Version is the schema version, which every public body except open contains as "v".
const Version = 1

// Kind is the kind of an event. Releases add kinds; old kinds keep their meaning.
type Kind string

// The kinds in streams, as the public API names them.
const (
	KindOpen          Kind = "open"
	KindText          Kind = "text"
	KindReasoning     Kind = "reasoning"
	KindToolUse       Kind = "tool_use"
	KindToolResult    Kind = "tool_result"
	KindInputRequired Kind = "input_required"
	KindToolRequired  Kind = "tool_required"
	KindConnect       Kind = "connect_required"
	KindUsage         Kind = "usage"
	KindStructured    Kind = "structured"
	KindAttachment    Kind = "attachment"
	KindRejected      Kind = "attachment_rejected"
	KindError         Kind = "error"
	KindDone          Kind = "done"
)

// The internal kinds: they make a turn resumable and auditable, stay in the log and are never sent.
const (
	KindMessage    Kind = "message"        // the user's message
	KindSupplied   Kind = "supplied"       // what the caller sent as the context of the message
	KindStarted    Kind = "started"        // a worker took the turn
	KindReply      Kind = "reply"          // the model's whole reply of one step
	KindToolOutput Kind = "tool_output"    // the model's input if tool_result was cut
	KindReference  Kind = "reference"      // a knowledge document was read
	KindDecision   Kind = "decision"       // a question was answered
	KindToolLater  Kind = "tool_later"     // the turn waits for results that servers of tools will post
	KindToolReply  Kind = "tool_reply"     // a result was posted
	KindToolAgain  Kind = "tool_again"     // a call that had no effect begins again
	KindVerdict    Kind = "tool_verdict"   // what lets a call run, or denies it
	KindFallback   Kind = "model_fallback" // another model answers from here on
	KindResponse   Kind = "model_response" // the provider has begun a response that can be read again
	KindCompacted  Kind = "compacted"      // a summary stands for the oldest part of the conversation
	KindFeedback   Kind = "feedback"       // a reader rated the answer of a turn that had ended
)

// Public reports whether events of this kind are sent to readers. Kinds of a later release are not:
// during a rolling deploy they may be in the log, and most new kinds are internal.
func (k Kind) Public() bool {
	switch k {
	case KindOpen, KindText, KindReasoning, KindToolUse, KindToolResult, KindInputRequired, KindToolRequired, KindConnect, KindUsage,
		KindStructured, KindAttachment, KindRejected, KindError, KindDone:
		return true
	}
	return false
}

// IsDelta reports whether events of this kind are pieces of a text: they are committed without being
// waited for, and are stored for the replay window only.
func (k Kind) IsDelta() bool { return k == KindText || k == KindReasoning }

// Event is one committed row of a session's log.
type Event struct {
	Seq     int64     // position in the log of the whole database: the reader's cursor
	Ord     int64     // position in the session, without gaps, from 1
	Session uuid.UUID // session of the log
	Turn    uuid.UUID // turn that wrote it
	At      time.Time // PostgreSQL's clock
	Kind    Kind
	Data    []byte // compact JSON on one line: exactly the bytes that are sent
}

// Body is the content of an event. The set of bodies is closed: only this package
// implements it.
type Body interface{ Kind() Kind }

// Open names the session of a stream. FromSeq is only set on a resumed stream.
type Open struct {
	SessionID uuid.UUID `json:"session_id"`
	FromSeq   *int64    `json:"from_seq,omitempty"`
}

// StepBreak precedes the text of a step if an earlier step of the turn has text.
const StepBreak = "\n\n"

// Text is a piece of the answer, to be appended to the previous text.
type Text struct {
	Text string `json:"text"`
}

// Reasoning is a piece of the provider's summary of its reasoning, to be appended to the reasoning
// right before it. It is not a part of the answer.
type Reasoning struct {
	Text string `json:"text"`
}

// ToolUse records the beginning of a tool call. It is committed before the tool runs.
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
	FinishReason string   `json:"finish_reason,omitempty"` // FinishLength, or ""
	Truncated    bool     `json:"truncated,omitempty"`     // the provider cut the turn's last reply at its token limit

	CachedInputTokens int64 `json:"cached_input_tokens,omitempty"` // of InputTokens: read from the provider's cache
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty"`  // of InputTokens: written to the provider's cache
}

// FinishLength is the FinishReason of a turn whose last reply was truncated.
const FinishLength = "length"

// Error ends a turn that failed. It is always followed by Done.
type Error struct {
	Code        Code   `json:"code"`
	Message     string `json:"message"`
	Recoverable bool   `json:"recoverable"`
}

// Done is the last event of a turn. Resumed is set on streams that were attached to a session
// later.
type Done struct {
	SessionID uuid.UUID `json:"session_id"`
	Resumed   *bool     `json:"resumed,omitempty"`
}

// InputRequired pauses a turn until an answer arrives or the request expires. Its members depend on
// Kind.
type InputRequired struct {
	What       Input       `json:"kind"`
	Plan       string      `json:"plan,omitempty"`        // approval: the model's description of its plan
	Operations []Operation `json:"operations,omitempty"`  // approval: the calls that need it, at least one
	OtherCalls []Operation `json:"other_calls,omitempty"` // approval: the calls of the same step that need none
	KeyName    string      `json:"key_name,omitempty"`    // secret
	ToolUseID  string      `json:"tool_use_id,omitempty"` // secret: the call that requests it
	ApprovalID uuid.UUID   `json:"approval_id"`
	DecideURL  string      `json:"decide_url,omitempty"` // approval: a path of this service
	SecretURL  string      `json:"secret_url,omitempty"` // secret: a path of this service
	Reason     string      `json:"reason,omitempty"`
	ExpiresAt  time.Time   `json:"expires_at"`

	SeparateApprover bool `json:"separate_approver,omitempty"` // approval: the key that sent the message cannot allow it
}

// Input is the kind of input that a Question requests.
type Input string

const (
	InputApproval Input = "approval"
	InputSecret   Input = "secret"
	InputTool     Input = "tool"        // results of the caller's own tools
	InputResult   Input = "tool_result" // results that the servers of tools post later
	InputConnect  Input = "connect"     // access to a tool server
)

// Operation is a tool call that an approval shows, exactly as it would run.
type Operation struct {
	Position         int             `json:"position,omitempty"` // in the step, from 1
	ToolUseID        string          `json:"tool_use_id"`
	Tool             string          `json:"tool"`
	Summary          string          `json:"summary"`
	Input            json.RawMessage `json:"input"`
	SuggestedPattern string          `json:"suggested_pattern,omitempty"` // pattern that would allow similar calls in future
	RequiredScope    string          `json:"required_scope,omitempty"`    // scope of a key that can allow it
}

// Structured is the final answer of a turn with a schema.
type Structured struct {
	Result json.RawMessage `json:"result"`
}

// Attachment lists the files that a turn produced. A turn has at most one.
type Attachment struct {
	Attachments []File `json:"attachments"`
}

// AttachmentRejected lists the unusable attachments of the message, each with its file_id,
// filename, code and reason. If there are any, it follows open.
type AttachmentRejected struct {
	Attachments json.RawMessage `json:"attachments"`
}

// File is a produced file. DownloadURL is signed and works without a key.
type File struct {
	Filename    string `json:"filename"`
	MIME        string `json:"mime"`
	Size        int64  `json:"size"` // bytes
	DownloadURL string `json:"download_url"`
}

// Message is the user's message. Label is shown instead of the content of a skill call: the skill's
// name and the names of its inputs, never a value.
type Message struct {
	Content string `json:"content"`
	Label   string `json:"label,omitempty"`
	Skill   string `json:"skill,omitempty"`
}

// Decision ends the wait of an InputRequired.
type Decision struct {
	ApprovalID uuid.UUID `json:"approval_id"`
	What       Input     `json:"kind"`
	Outcome    Outcome   `json:"outcome"`
	Key        string    `json:"key,omitempty"`     // id of the API key that answered; "" if it expired
	Actor      string    `json:"actor,omitempty"`   // the user behind that key, as its holder names them
	Reason     string    `json:"reason,omitempty"`  // reason for a denial, for the model
	Pattern    string    `json:"pattern,omitempty"` // added to the allow-list
}

// Feedback is a reader's opinion of an answer. It follows the end of its turn; the newest one of a
// turn counts.
type Feedback struct {
	Rating Rating `json:"rating"`
	Note   string `json:"note,omitempty"`
	Key    string `json:"key"` // id of the API key or the member
}

// Rating is what a reader thinks of an answer.
type Rating string

const (
	Good Rating = "good"
	Bad  Rating = "bad"
)

// Outcome is the result of an approval or a secret request.
type Outcome string

const (
	Allowed  Outcome = "allowed"
	Denied   Outcome = "denied"
	Provided Outcome = "provided"
	Skipped  Outcome = "skipped"
	Expired  Outcome = "expired" // no answer arrived in time
)

// Started records which attempt of a turn runs on which node, and what runs: the agent and, for a
// skill, its version.
type Started struct {
	Epoch        int64         `json:"epoch"`
	Node         string        `json:"node"`
	Agent        string        `json:"agent"`
	AgentVersion AgentVersion  `json:"agent_version"`
	SkillVersion int           `json:"skill_version,omitempty"`
	Reason       AttemptReason `json:"reason,omitempty"`
}

// AttemptReason is why another attempt of a turn begins; "" is the first one.
type AttemptReason string

const (
	Resumed     AttemptReason = "resumed" // the turn has its answer
	AfterCrash  AttemptReason = "crash"   // its worker was lost, or held the turn for too long
	AfterDrain  AttemptReason = "drain"   // the replica of its worker stopped
	AfterOutage AttemptReason = "outage"  // its worker lost the database
)

// Reply is the model's whole reply in one step. With it a turn can be rebuilt after a crash or a
// pause.
type Reply struct {
	Text  string     `json:"text,omitempty"`
	JSON  bool       `json:"json,omitempty"` // Text is an answer in a schema, and was not shown
	Cut   bool       `json:"cut,omitempty"`  // it reached its length limit
	Calls []ToolCall `json:"calls,omitempty"`
	Usage Usage      `json:"usage"`

	Reasoning []byte `json:"reasoning,omitempty"`  // the reasoning of the reply, sealed by the vault
	RequestID string `json:"request_id,omitempty"` // the provider's id of the request
	Retries   []Code `json:"retries,omitempty"`    // failures after which the model was asked again
	Sent      *Sent  `json:"sent,omitempty"`       // the request; nil in the logs of older releases

	PromptSHA256 string        `json:"prompt_sha256,omitempty"` // of the request
	AgentVersion *AgentVersion `json:"agent_version,omitempty"` // that made the request
}

// ToolCall is a tool call as the model requested it. Input is a JSON object.
type ToolCall struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
}

// ToolOutput is the whole output of a tool; ToolResult shows only its beginning. The model reads
// Output, or Preview if there is one.
type ToolOutput struct {
	ToolUseID string `json:"tool_use_id"`
	Output    string `json:"output"`            // of more than 64 KiB, the beginning and the end
	Preview   string `json:"preview,omitempty"` // its beginning and its end, and where the rest is
	Size      int    `json:"size,omitempty"`    // bytes of the whole output, if there is a preview
	File      string `json:"file,omitempty"`    // with the whole output, in the session's folder
	SHA256    string `json:"sha256,omitempty"`  // of the whole output, in hexadecimal, if it has a file
}

// Reference names a knowledge document that the agent read. Source is wiki_read,
// read, grep or search.
type Reference struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// Document returns the path of the document in the knowledge store. A page of the wiki has a name,
// which is a part of its path.
func (r Reference) Document() string {
	if r.Source != "wiki_read" {
		return r.Path
	}
	return "wiki/" + r.Path + ".md"
}

func (Open) Kind() Kind               { return KindOpen }
func (ToolRequired) Kind() Kind       { return KindToolRequired }
func (ToolLater) Kind() Kind          { return KindToolLater }
func (ToolReply) Kind() Kind          { return KindToolReply }
func (ToolAgain) Kind() Kind          { return KindToolAgain }
func (ToolVerdict) Kind() Kind        { return KindVerdict }
func (ModelFallback) Kind() Kind      { return KindFallback }
func (Compacted) Kind() Kind          { return KindCompacted }
func (ConnectRequired) Kind() Kind    { return KindConnect }
func (Text) Kind() Kind               { return KindText }
func (Reasoning) Kind() Kind          { return KindReasoning }
func (ModelResponse) Kind() Kind      { return KindResponse }
func (ToolUse) Kind() Kind            { return KindToolUse }
func (ToolResult) Kind() Kind         { return KindToolResult }
func (InputRequired) Kind() Kind      { return KindInputRequired }
func (Usage) Kind() Kind              { return KindUsage }
func (Structured) Kind() Kind         { return KindStructured }
func (Attachment) Kind() Kind         { return KindAttachment }
func (AttachmentRejected) Kind() Kind { return KindRejected }
func (Error) Kind() Kind              { return KindError }
func (Done) Kind() Kind               { return KindDone }
func (Message) Kind() Kind            { return KindMessage }
func (Started) Kind() Kind            { return KindStarted }
func (Reply) Kind() Kind              { return KindReply }
func (ToolOutput) Kind() Kind         { return KindToolOutput }
func (Reference) Kind() Kind          { return KindReference }
func (Decision) Kind() Kind           { return KindDecision }
func (Feedback) Kind() Kind           { return KindFeedback }
