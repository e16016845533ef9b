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
	Pool       Pool       `json:"pool"`
	Queues     []Queue    `json:"queues"`
	Replicas   int        `json:"replicas"`  // processes that live, with this one
	Listening  bool       `json:"listening"` // this process receives the notifications of the others
	Working    bool       `json:"working"`   // this process runs turns
	Sandbox    Sandbox    `json:"sandbox"`
	Settings   []Setting  `json:"settings"`
}

// Migrations are those of this release.
type Migrations struct {
	Applied int      `json:"applied"`
	Pending []string `json:"pending"`
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
	Name  string `json:"queue"`
	State string `json:"state"`
	Jobs  int64  `json:"jobs"`
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
