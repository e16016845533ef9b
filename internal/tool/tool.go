// Package tool defines the interface of an agent's tools. Its sub-packages implement tools.
package tool

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

// Tool is an action that an agent can take.
type Tool interface {
	Spec() Spec
	// Call runs the tool. A Result with OK false is the tool's own refusal, which the model reads,
	// and so is an error that is a Refusal; any other error is internal and fails the call with a
	// general text.
	Call(ctx context.Context, call Call) (Result, error)
}

// Spec describes a tool to the model and to the turn that runs it.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of Input, an object
	// Idempotent tools may run again, with the same call id, if a crash leaves the outcome of a
	// call unknown.
	Idempotent bool
	// Caller reports that the caller of the API runs the tool. Call is never used: the turn waits
	// until the caller has posted the result.
	Caller bool
	// Later reports that Call may return a Later error.
	Later bool
	// UniqueID reports that calls need ids that no other call of any turn has: the receiver
	// recognizes a repetition by them. So do those of Caller and Later.
	UniqueID bool
	// Unavailable is the reason why the tool cannot be used on this server; "": it can. The model
	// is not offered such a tool; a call of it returns this reason.
	Unavailable string
}

// MaxOutput is how many bytes of a result the model reads. Of a longer one it reads a preview, and it
// can read the rest in parts: tools that return parts of a text return no longer ones.
const MaxOutput = 16 << 10

// Call is one invocation.
type Call struct {
	ID        string // tool_use_id
	Tool      string // name of the tool
	Workspace uuid.UUID
	Session   uuid.UUID
	Turn      uuid.UUID
	Input     json.RawMessage // a JSON object in canonical form, with the model's words: parse it with Decode
	// Await lets the result of the call be posted from now on. A tool that may return Later uses it
	// before its request leaves: the receiver can be faster than the turn.
	Await func(context.Context) error
}

// Result is the outcome of a call.
type Result struct {
	OK         bool
	Output     string // whole; the stream shows the first 4000 characters, and the model MaxOutput bytes
	References []event.Reference
}

// Summarizer is implemented by tools that describe a call in a few words ("read onboarding"). Parts
// of the input in it are a render.Argument. Without it the summary is made from the input.
type Summarizer interface {
	Summary(input json.RawMessage) string
}

// Refusal is an error for the model: the reason, and what the model may do instead.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// Later is the error of a call that was accepted and whose result will be posted. The turn waits
// for it, and no goroutine does.
type Later struct{}

// Error implements error.
func (Later) Error() string { return "the result of the call will be posted later" }

// Connect is the error of a call that had no effect, because a tool server has not granted access
// to the workspace or the caller, or not enough. The turn waits until a user has connected the
// server, then the call is made.
type Connect struct {
	Server string
	Shared bool      // the grant is for the whole workspace, not for a caller
	Grant  uuid.UUID // the grant that the server did not accept; uuid.Nil: there is none
	Scopes []string  // that the grant lacks; nil: the server needs another grant
}

// Error implements error.
func (c Connect) Error() string { return "the tool server " + c.Server + " is not connected" }

// Checker is implemented by tools that check the input of a call against a schema. wrong is a
// sentence for the model, "" if the input is valid.
type Checker interface {
	Check(input json.RawMessage) (wrong string)
}

// WrongInput returns a sentence for the model if a tool would not accept the input of a call, as
// far as that is known before the call, and "" otherwise. Such a call needs no approval.
func WrongInput(t Tool, input json.RawMessage) (wrong string) {
	if c, ok := t.(Checker); ok {
		return c.Check(input)
	}
	return Unknown(t.Spec().Schema, input)
}

// Reject returns a failed result with what the model should do instead.
func Reject(output string) Result { return Result{Output: output} }
