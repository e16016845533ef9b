// Package turn starts, works, resumes, cancels and reclaims turns. It is the only
// user of River, the application's wiring aside. It promises that an accepted
// message is answered by exactly one turn, that a finished tool call never runs
// again, and that a worker which lost its lease writes nothing.
package turn

import (
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/workspace"
)

// Request is a message to a workspace's agent, already validated.
type Request struct {
	Workspace workspace.Workspace
	Key       string    // id of the API key
	Command   string    // free text
	CallerID  string    // "" for none
	Session   uuid.UUID // uuid.Nil for none; takes precedence over CallerID
	Limits    Limits    // may only lower the workspace's

	Hash           []byte // SHA-256 of the request as it came
	IdempotencyKey string // "" for none
	LastEvent      int64  // the client sends a message again and has seen up to here; 0: it does not
}

// route is the operation whose idempotency keys these are.
const route = "sendMessage"

func (r Request) once() session.Once {
	return session.Once{Workspace: r.Workspace.ID, Route: route, Key: r.IdempotencyKey, Hash: r.Hash}
}

// Limits bound one turn. Zero means the workspace's value.
type Limits struct {
	MaxResponseSeconds int
	MaxTurns           int
}

// Started tells where to read the answer.
type Started struct {
	Session uuid.UUID
	Turn    uuid.UUID
	From    session.From // just before the turn's open event, or where the client stands
	// Replayed says that the request had started this turn before.
	Replayed bool
}

// Canceled is the answer to a cancel call.
type Canceled struct {
	Canceled     bool // this call ended the turn
	HaltDeferred bool // the worker's stop is not confirmed yet
}
