// Package turn starts, runs, resumes, cancels and reclaims turns. Besides the application's wiring,
// it is the only user of River. It promises that an accepted message is answered by exactly one
// turn, that a finished tool call never runs again, and that a worker which lost its lease writes
// nothing.
package turn

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Request is a message to a workspace's agent. Its parser has validated everything that needs no
// database; Start validates the rest.
type Request struct {
	Workspace workspace.Workspace
	Key       string    // id of the API key
	Scopes    []string  // scopes of that key, including implied ones
	CallerID  string    // "" for none
	Session   uuid.UUID // uuid.Nil for none; takes precedence over CallerID

	Agent        string      // name of an agent; "": the default agent
	AgentVersion agent.Which // zero: the published one; a draft requires the scope config:write

	Command     string                     // free text; "" if a skill is called
	Skill       string                     // name of a skill, in any of its spellings
	Input       map[string]json.RawMessage // for the skill
	Secrets     []string                   // names of credentials that the run may use
	Schema      json.RawMessage            // schema of the final answer; nil: any answer
	Tools       []CallerTool               // the caller's own tools
	Options     Options                    // what the caller chooses
	Supplied    event.Supplied             // the context that the caller sent; its messages are for a new session
	Attachments []uuid.UUID                // ids of files
	Callback    *Callback                  // nil for none
	Limits      Limits                     // may only lower those of the agent's version
	Multitask   Multitask

	Labels         session.Labels
	Named          string // the sender's name for the message; "" if unnamed
	Hash           []byte // SHA-256 of the original request
	IdempotencyKey string // "" for none
	LastEvent      int64  // the message is a retry from a client that has seen the events up to here; 0: it is not
}

// isPlain reports whether a message begins a new session and creates only its turn, without a look
// at budgets.
func (r Request) isPlain() bool {
	return r.Session == uuid.Nil && r.CallerID == "" && r.IdempotencyKey == "" && r.LastEvent == 0 && r.Agent == "" &&
		r.AgentVersion == agent.Published && r.Skill == "" && len(r.Secrets) == 0 &&
		!r.Workspace.Budgeted && r.Schema == nil && len(r.Tools) == 0 && r.Options.isZero() && !r.hasContext() && len(r.Attachments) == 0 &&
		r.Callback == nil && r.Limits.MaxCostUSD == nil
}

// Callback is the receiver of a report about the end of a turn.
type Callback struct {
	URL      string
	Metadata map[string]string
	Name     string            // the caller's name for it; "" if unnamed
	Protocol callback.Protocol // "": Parley's own
	Auth     callback.Auth
}

// Multitask decides what happens to a message sent while a turn of its session is running.
type Multitask string

const (
	Reject    Multitask = "reject"    // TURN_IN_PROGRESS; the default
	Enqueue   Multitask = "enqueue"   // the message is answered after those before it
	Interrupt Multitask = "interrupt" // the message ends the turn in progress and all lined-up turns, and is answered
)

// route is the operation that scopes these idempotency keys.
const route = "sendMessage"

func (r Request) onceOf() session.Once {
	return session.Once{Workspace: r.Workspace.ID, Route: route, Key: r.IdempotencyKey, Hash: r.Hash, Caller: r.Key}
}

// Limits bound one turn. Zero means the value of the agent's version.
type Limits struct {
	MaxResponseSeconds int
	MaxTurns           int
	MaxCostUSD         *float64 // nil: none
}

// Started is the position at which a client reads the answer.
type Started struct {
	Session  uuid.UUID
	Turn     uuid.UUID
	From     eventlog.From // just before the turn's open event, or the client's position
	Callback uuid.UUID     // uuid.Nil for none
	// Rejected are the attachments that the message does not include; if Replayed is set, they are
	// stored with the turn.
	Rejected []filestore.Rejected
	// Resent reports that the session has messages of its own, so that the supplied ones were not
	// stored.
	Resent bool
	// Replayed reports that an earlier request with the same key started this turn.
	Replayed bool
}

// Canceled is the response to a cancel call.
type Canceled struct {
	Canceled     bool // this call ended the turn
	HaltDeferred bool // the worker's stop is not confirmed yet
}
