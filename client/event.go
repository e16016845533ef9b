package client

import (
	"encoding/json"
	"fmt"
	"time"
)

// Kind is the kind of a frame. A server may send kinds that this release does not know: skip them.
type Kind string

// The kinds of frames, as the API names them.
const (
	KindOpen               Kind = "open"
	KindText               Kind = "text"
	KindReasoning          Kind = "reasoning"
	KindToolUse            Kind = "tool_use"
	KindToolResult         Kind = "tool_result"
	KindInputRequired      Kind = "input_required"
	KindToolRequired       Kind = "tool_required"
	KindConnectRequired    Kind = "connect_required"
	KindUsage              Kind = "usage"
	KindStructured         Kind = "structured"
	KindAttachment         Kind = "attachment"
	KindAttachmentRejected Kind = "attachment_rejected"
	KindError              Kind = "error"
	KindDone               Kind = "done"
)

// Body is the decoded data of a frame: Open, Text, Reasoning, ToolUse, ToolResult, InputRequired,
// ToolRequired, ConnectRequired, TurnUsage, Structured, Attachment, AttachmentRejected, TurnError
// or Done.
type Body interface {
	// Kind returns the kind of the frames that carry this body.
	Kind() Kind
}

// Open is the first frame of a stream and names its session.
type Open struct {
	SessionID string `json:"session_id"`
	FromSeq   *int64 `json:"from_seq,omitempty"` // the cursor of a resumed stream
}

// Text is a piece of the answer. Append it to the pieces before it.
type Text struct {
	Text string `json:"text"`
}

// Reasoning is a piece of a summary of the model's reasoning, which is not a part of the answer.
// Append it to the reasoning right before it.
type Reasoning struct {
	Text string `json:"text"`
}

// ToolUse reports that a tool call begins.
type ToolUse struct {
	Tool      string `json:"tool"`
	Summary   string `json:"summary"`
	ToolUseID string `json:"tool_use_id,omitempty"`
}

// ToolResult reports the outcome of a tool call.
type ToolResult struct {
	Tool      string `json:"tool"`
	OK        bool   `json:"ok"`
	Output    string `json:"output"` // at most 4000 characters
	Truncated bool   `json:"truncated,omitempty"`
	ToolUseID string `json:"tool_use_id,omitempty"`
}

// InputRequired reports that the turn waits for an approval or a secret. Its members depend on
// RequestKind. Respond with Client.Decide, Client.ProvideSecret or Client.SkipSecret.
type InputRequired struct {
	RequestKind string      `json:"kind"` // approval, secret
	Plan        string      `json:"plan,omitempty"`
	Operations  []Operation `json:"operations,omitempty"`  // approval: the calls that need it
	OtherCalls  []Operation `json:"other_calls,omitempty"` // approval: the calls of the same step that do not
	KeyName     string      `json:"key_name,omitempty"`    // secret: its name
	ToolUseID   string      `json:"tool_use_id,omitempty"` // secret: the call that needs it
	ApprovalID  string      `json:"approval_id"`
	DecideURL   string      `json:"decide_url,omitempty"`
	SecretURL   string      `json:"secret_url,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	ExpiresAt   time.Time   `json:"expires_at"`
	// SeparateApprover means that the key that sent the message cannot allow the operations.
	SeparateApprover bool `json:"separate_approver,omitempty"`
}

// ConnectRequired reports that the turn waits until a user has granted access to a tool server with
// the link. Then the call is made.
type ConnectRequired struct {
	ApprovalID string    `json:"approval_id"` // id of the wait
	ToolUseID  string    `json:"tool_use_id"`
	Server     string    `json:"server"`
	ConnectURL string    `json:"connect_url"` // works once, in any browser
	Scopes     []string  `json:"scopes"`      // that the present access lacks; nil: there is none yet
	ExpiresAt  time.Time `json:"expires_at"`
}

// Operation is a tool call of an approval, exactly as it would run.
type Operation struct {
	Position         int             `json:"position,omitempty"` // in the step, from 1
	ToolUseID        string          `json:"tool_use_id"`
	Tool             string          `json:"tool"`
	Summary          string          `json:"summary"`
	Input            json.RawMessage `json:"input"`
	SuggestedPattern string          `json:"suggested_pattern,omitempty"` // for Decision.Pattern
	RequiredScope    string          `json:"required_scope,omitempty"`    // of the approver's key
}

// Structured is the final answer to a message with a ResponseSchema.
type Structured struct {
	Result json.RawMessage `json:"result"`
}

// Attachment names the files that the turn produced.
type Attachment struct {
	Attachments []OutputFile `json:"attachments"`
}

// AttachmentRejected lists the attachments of the message that the turn cannot use, each with its
// file_id, filename, code and reason.
type AttachmentRejected struct {
	Attachments json.RawMessage `json:"attachments"`
}

// OutputFile is a file that a turn produced. DownloadURL is signed and works without a key.
type OutputFile struct {
	Filename    string `json:"filename"`
	MIME        string `json:"mime"`
	Size        int64  `json:"size"` // bytes
	DownloadURL string `json:"download_url"`
}

// TurnError reports that the turn failed. A Done frame follows.
type TurnError struct {
	Code        string `json:"code"` // such as canceled, timed_out or model_error
	Message     string `json:"message"`
	Recoverable bool   `json:"recoverable"` // sending the message again can succeed
}

// Done is the last frame of a turn.
type Done struct {
	SessionID string `json:"session_id"`
	Resumed   *bool  `json:"resumed,omitempty"` // true on a stream that Follow began
}

// Kind returns KindOpen.
func (Open) Kind() Kind { return KindOpen }

// Kind returns KindText.
func (Text) Kind() Kind { return KindText }

// Kind returns KindReasoning.
func (Reasoning) Kind() Kind { return KindReasoning }

// Kind returns KindToolUse.
func (ToolUse) Kind() Kind { return KindToolUse }

// Kind returns KindToolResult.
func (ToolResult) Kind() Kind { return KindToolResult }

// Kind returns KindInputRequired.
func (InputRequired) Kind() Kind { return KindInputRequired }

// Kind returns KindToolRequired.
func (ToolRequired) Kind() Kind { return KindToolRequired }

// Kind returns KindConnectRequired.
func (ConnectRequired) Kind() Kind { return KindConnectRequired }

// Kind returns KindUsage.
func (TurnUsage) Kind() Kind { return KindUsage }

// Kind returns KindStructured.
func (Structured) Kind() Kind { return KindStructured }

// Kind returns KindAttachment.
func (Attachment) Kind() Kind { return KindAttachment }

// Kind returns KindAttachmentRejected.
func (AttachmentRejected) Kind() Kind { return KindAttachmentRejected }

// Kind returns KindError.
func (TurnError) Kind() Kind { return KindError }

// Kind returns KindDone.
func (Done) Kind() Kind { return KindDone }

var decoders = map[Kind]func(data []byte) (Body, error){
	KindOpen: decodeBody[Open], KindText: decodeBody[Text], KindReasoning: decodeBody[Reasoning], KindToolUse: decodeBody[ToolUse],
	KindToolResult:    decodeBody[ToolResult],
	KindInputRequired: decodeBody[InputRequired], KindToolRequired: decodeBody[ToolRequired],
	KindConnectRequired: decodeBody[ConnectRequired], KindUsage: decodeBody[TurnUsage], KindStructured: decodeBody[Structured],
	KindAttachment: decodeBody[Attachment], KindAttachmentRejected: decodeBody[AttachmentRejected], KindError: decodeBody[TurnError],
	KindDone: decodeBody[Done],
}

func decodeBody[B Body](data []byte) (Body, error) {
	var b B
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("decode %s frame: %w", b.Kind(), err)
	}
	return b, nil
}
