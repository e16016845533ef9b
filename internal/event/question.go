package event

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Question is a body with which a turn waits until it has an answer or the question expires.
type Question interface {
	Body
	// Wait returns the id of the question and what it requests.
	Wait() (id uuid.UUID, kind Input)
	// Expiring returns the question with the time at which it expires.
	Expiring(at time.Time) Question
}

// ToolRequired pauses a turn until its caller has posted the results of the caller's own tools.
type ToolRequired struct {
	What       Input         `json:"kind"` // InputTool
	ApprovalID uuid.UUID     `json:"approval_id"`
	Calls      []PendingCall `json:"calls"`
	ReplyURL   string        `json:"reply_url"` // a path of this service
	ExpiresAt  time.Time     `json:"expires_at"`
}

// ToolLater pauses a turn until servers of tools have posted the results of calls that they have
// accepted. Clients see only that the calls have no result yet.
type ToolLater struct {
	What       Input         `json:"kind"` // InputResult
	ApprovalID uuid.UUID     `json:"approval_id"`
	Calls      []PendingCall `json:"calls"`
	ExpiresAt  time.Time     `json:"expires_at"`
}

// ConnectRequired pauses a turn until a user has connected a tool server with the link. The call has
// had no effect, and is made then.
type ConnectRequired struct {
	What       Input     `json:"kind"` // InputConnect
	ApprovalID uuid.UUID `json:"approval_id"`
	ToolUseID  string    `json:"tool_use_id"`
	Server     string    `json:"server"`
	ConnectURL string    `json:"connect_url"` // works once, in any browser
	ExpiresAt  time.Time `json:"expires_at"`
	Scopes     []string  `json:"scopes,omitempty"` // that the server's present grant lacks
	Grant      uuid.UUID `json:"-"`                // the grant that was not enough; uuid.Nil: there is none
}

// ToolAgain records that a call begins again after its server was connected.
type ToolAgain struct {
	ToolUseID string `json:"tool_use_id"`
}

// PendingCall is a call that waits for its result.
type PendingCall struct {
	ToolUseID string          `json:"tool_use_id"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
}

// ToolReply is a result as it was posted. The turn uses the first reply to a call.
type ToolReply struct {
	ToolUseID string `json:"tool_use_id"`
	OK        bool   `json:"ok"`
	Output    string `json:"output"`
	Key       string `json:"key,omitempty"` // id of the API key that posted it
}

// QuestionKind returns what an encoded Question requests; "": nothing that this release knows.
func QuestionKind(data []byte) Input {
	var q struct {
		Kind Input `json:"kind"`
	}
	if json.Unmarshal(data, &q) != nil {
		return ""
	}
	return q.Kind
}

// Wait implements Question.
func (b InputRequired) Wait() (uuid.UUID, Input) { return b.ApprovalID, b.What }

// Wait implements Question.
func (b ToolRequired) Wait() (uuid.UUID, Input) { return b.ApprovalID, InputTool }

// Wait implements Question.
func (b ToolLater) Wait() (uuid.UUID, Input) { return b.ApprovalID, InputResult }

// Wait implements Question.
func (b ConnectRequired) Wait() (uuid.UUID, Input) { return b.ApprovalID, InputConnect }

// Expiring implements Question.
func (b InputRequired) Expiring(at time.Time) Question {
	b.ExpiresAt = at
	return b
}

// Expiring implements Question.
func (b ToolRequired) Expiring(at time.Time) Question {
	b.What, b.ExpiresAt = InputTool, at
	return b
}

// Expiring implements Question.
func (b ToolLater) Expiring(at time.Time) Question {
	b.What, b.ExpiresAt = InputResult, at
	return b
}

// Expiring implements Question.
func (b ConnectRequired) Expiring(at time.Time) Question {
	b.What, b.ExpiresAt = InputConnect, at
	return b
}

// QuestionBody decodes an encoded Question; nil: this release does not know it.
func QuestionBody(data []byte) (Question, error) {
	kind := KindInputRequired
	switch QuestionKind(data) {
	case InputTool:
		kind = KindToolRequired
	case InputConnect:
		kind = KindConnect
	}
	body, err := Decode(kind, data)
	q, _ := body.(Question)
	return q, err
}
