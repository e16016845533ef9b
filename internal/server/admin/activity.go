package admin

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Activity is the work of all processes on a database at a moment, for its administrators.
type Activity struct {
	At        time.Time `json:"at"` // PostgreSQL's clock
	Replicas  int       `json:"replicas"`
	Listeners int       `json:"listeners"`
	Streams   int64     `json:"streams"` // open streams and blocking calls

	Turns     TurnCounts    `json:"turns"`
	Ended     []EndedTurns  `json:"ended"`   // those that began in the last five minutes and have ended
	Workers   []Worker      `json:"workers"` // processes that run turns now
	Slow      []RunningTurn `json:"slow"`    // the oldest that run, oldest first
	Approvals OpenApprovals `json:"approvals"`
	Queues    []Queue       `json:"queues"` // jobs that are due or have failed
}

// TurnCounts are the turns that have not ended.
type TurnCounts struct {
	LinedUp      int64   `json:"lined_up"`
	Queued       int64   `json:"queued"`
	Running      int64   `json:"running"`
	Waiting      int64   `json:"waiting"`
	OldestQueued float64 `json:"oldest_queued_seconds"`
}

// EndedTurns are the turns that ended in one way.
type EndedTurns struct {
	State string `json:"state"`
	Error string `json:"error"` // code of the error event; "" if there is none
	Turns int64  `json:"turns"`
}

// Worker is a process that runs turns.
type Worker struct {
	Node  int   `json:"node"`
	Turns int64 `json:"turns"`
}

// RunningTurn is a turn that runs.
type RunningTurn struct {
	Turn      uuid.UUID `json:"turn_id"`
	Session   uuid.UUID `json:"session_id"`
	Workspace string    `json:"workspace"`
	Node      int       `json:"node"`
	Seconds   float64   `json:"seconds"` // of its present attempt
}

// OpenApprovals are the questions that wait for an answer.
type OpenApprovals struct {
	Pending int64   `json:"pending"`
	Oldest  float64 `json:"oldest_seconds"`
}

func (s *api) getActivity(ctx context.Context, _ *call) (any, error) { return s.Activity(ctx) }
