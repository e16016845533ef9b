package admin

import (
	"context"
	"time"
)

// System describes the server, for its administrators. Its process fills it.
type System struct {
	Version    string     `json:"version"`
	Commit     string     `json:"commit"`
	Platform   string     `json:"platform"`
	PostgreSQL string     `json:"postgresql"`
	PausedAt   *time.Time `json:"paused_at"`
	PausedBy   *string    `json:"paused_by"`

	Migrations Migrations `json:"migrations"`
	Database   Database   `json:"database"`
	Pool       Pool       `json:"pool"`
	Queues     []Queue    `json:"queues"`
	FailedJobs []Job      `json:"failed_jobs"` // newest first
	Replicas   int        `json:"replicas"`    // processes that live, with this one
	Listeners  int        `json:"listeners"`   // connections that receive notifications, of all processes
	Listening  bool       `json:"listening"`   // this process receives the notifications of the others
	Working    bool       `json:"working"`     // this process runs turns
	Sandbox    Sandbox    `json:"sandbox"`
	LogLevel   string     `json:"log_level"`
	Settings   []Setting  `json:"settings"`
}

// Migrations are those of this release.
type Migrations struct {
	Version int64    `json:"version"` // newest of Parley's that the database has
	Applied int      `json:"applied"`
	Pending []string `json:"pending"`
}

// Database is the database as PostgreSQL describes it.
type Database struct {
	Size               int64   `json:"size_bytes"`
	Connections        int     `json:"connections"` // of all programs
	MaxConnections     int     `json:"max_connections"`
	LongestTransaction float64 `json:"longest_transaction_seconds"` // of those that are open
}

// Pool are the connections of this process to the database.
type Pool struct {
	Max   int32 `json:"max"`
	Open  int32 `json:"open"`
	InUse int32 `json:"in_use"`
	Waits int64 `json:"waits"` // requests that had to wait for a connection since the start
}

// Queue is the number of jobs in a state.
type Queue struct {
	Name   string  `json:"queue"`
	State  string  `json:"state"`
	Jobs   int64   `json:"jobs"`
	Oldest float64 `json:"oldest_seconds"` // since the oldest was to run; 0 if that is later
}

// Job is a job whose last attempt failed.
type Job struct {
	ID          int64     `json:"job_id"`
	Kind        string    `json:"kind"`
	Queue       string    `json:"queue"`
	State       string    `json:"state"` // retryable or discarded
	Attempt     int       `json:"attempt"`
	MaxAttempts int       `json:"max_attempts"`
	At          time.Time `json:"at"`    // of the attempt
	Error       string    `json:"error"` // its first 300 characters
}

// Sandbox is the result of the check for commands.
type Sandbox struct {
	Available bool    `json:"available"`
	Reason    *string `json:"reason"` // why there are no commands
}

// Setting is a setting of this process, without secrets.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func (s *api) getSystem(ctx context.Context, _ *call) (any, error) {
	v, err := s.System(ctx)
	if err != nil {
		return nil, err
	}
	pause, err := s.Workspaces.FindServerPause(ctx)
	if pause.At != nil {
		pause.At = new(pause.At.UTC())
	}
	v.PausedAt, v.PausedBy = pause.At, pause.By
	return v, err
}
