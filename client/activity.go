package client

import (
	"context"
	"net/http"
	"time"
)

// Activity is the work of all processes of a server at a moment.
type Activity struct {
	At        time.Time     `json:"at"` // PostgreSQL's clock
	Replicas  int           `json:"replicas"`
	Listeners int           `json:"listeners"` // connections that receive notifications
	Streams   int64         `json:"streams"`   // open streams and blocking calls
	Turns     TurnCounts    `json:"turns"`
	Ended     []EndedTurns  `json:"ended"`   // those that began in the last five minutes and have ended
	Workers   []Worker      `json:"workers"` // processes that run turns now
	Slow      []RunningTurn `json:"slow"`    // the oldest that run, oldest first
	Approvals OpenApprovals `json:"approvals"`
	Queues    []Queue       `json:"queues"` // jobs that are due, run or have failed
}

// TurnCounts are the turns that have not ended.
type TurnCounts struct {
	LinedUp      int64   `json:"lined_up"` // behind another turn of their session
	Queued       int64   `json:"queued"`
	Running      int64   `json:"running"`
	Waiting      int64   `json:"waiting"` // for an answer or a result
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
	Turn      string  `json:"turn_id"`
	Session   string  `json:"session_id"`
	Workspace string  `json:"workspace"`
	Node      int     `json:"node"`
	Seconds   float64 `json:"seconds"` // of its present attempt
}

// OpenApprovals are the questions that wait for an answer.
type OpenApprovals struct {
	Pending int64   `json:"pending"`
	Oldest  float64 `json:"oldest_seconds"`
}

// Queue is the number of jobs in a state.
type Queue struct {
	Name   string  `json:"queue"`
	State  string  `json:"state"`
	Jobs   int64   `json:"jobs"`
	Oldest float64 `json:"oldest_seconds"` // since the oldest was to run
}

// Activity returns the work of all processes of the server.
func (a Admin) Activity(ctx context.Context) (Activity, error) {
	return administer[Activity](ctx, a, a.server(http.MethodGet, nil, "activity"))
}
