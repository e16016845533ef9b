package workspace

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
)

// Pause is the state of the switch that stops agents.
type Pause struct {
	At *time.Time `json:"paused_at"` // nil: the agents run
	By *string    `json:"paused_by"`
}

// Pause stops the agents of a workspace: within a second no turn starts on any replica, and the
// running ones end. by names the administrator.
func (s *Store) Pause(ctx context.Context, id uuid.UUID, by string) (Pause, error) {
	return s.setPause(ctx, id, &by)
}

// Resume lets the agents of a workspace run again, unless the server is paused.
func (s *Store) Resume(ctx context.Context, id uuid.UUID) (Pause, error) {
	return s.setPause(ctx, id, nil)
}

func (s *Store) setPause(ctx context.Context, id uuid.UUID, by *string) (Pause, error) {
	n, err := s.q.WorkspacePause(ctx, id, by)
	if err != nil {
		return Pause{}, fmt.Errorf("pause workspace: %w", err)
	}
	if n == 0 {
		return Pause{}, fault.New(fault.WorkspaceNotFound, "There is no workspace %s. `parley workspace list` shows those that exist.", id)
	}
	w, err := s.Find(ctx, id.String())
	return w.Paused, err
}

// PauseServer is Pause for all workspaces.
func (s *Store) PauseServer(ctx context.Context, by string) (Pause, error) {
	return s.setServerPause(ctx, &by)
}

// ResumeServer is Resume for all workspaces. A workspace that was paused itself stays so.
func (s *Store) ResumeServer(ctx context.Context) (Pause, error) { return s.setServerPause(ctx, nil) }

func (s *Store) setServerPause(ctx context.Context, by *string) (Pause, error) {
	if err := s.q.ServerPause(ctx, by); err != nil {
		return Pause{}, fmt.Errorf("pause the server: %w", err)
	}
	return s.FindServerPause(ctx)
}

// FindServerPause returns the state of the switch for all workspaces.
func (s *Store) FindServerPause(ctx context.Context) (Pause, error) {
	row, err := s.q.ServerPaused(ctx)
	if err != nil {
		return Pause{}, fmt.Errorf("read the pause of the server: %w", err)
	}
	return Pause{At: row.PausedAt, By: row.PausedBy}, nil
}
