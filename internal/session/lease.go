package session

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/eventlog"
)

// Tenure is a running turn of this process.
type Tenure struct {
	eventlog.Lease
	Ran time.Duration // since its claim, as measured by its worker
}

// RenewLeases extends the leases of turns to length from now, on PostgreSQL's clock. It returns the
// epochs of the turns that this process still holds, by turn.
func (s *Store) RenewLeases(ctx context.Context, length time.Duration, tenures []Tenure) (held map[uuid.UUID]int64, err error) {
	ids, ran := make([]uuid.UUID, len(tenures)), make([]float64, len(tenures))
	for i, t := range tenures {
		ids[i], ran[i] = t.Turn, t.Ran.Seconds()
	}
	rows, err := s.q.LeasesRenew(ctx, length.Seconds(), s.events.Node(), ids, ran)
	if err != nil {
		return nil, err
	}
	held = make(map[uuid.UUID]int64, len(rows))
	for _, r := range rows {
		held[r.ID] = r.Epoch
	}
	return held, nil
}

// ConfirmHalt records that the worker of a canceled turn has stopped. It returns false if the turn
// was not canceled.
func (s *Store) ConfirmHalt(ctx context.Context, turn uuid.UUID) (canceled bool, err error) {
	id, err := s.q.TurnHalted(ctx, turn)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.events.Nudge(id)
	return true, nil
}

// PlaceTurns inserts jobs for queued turns that waited until their workspace may run another turn,
// except for turns of the workspaces in full. It returns the number of inserted jobs.
func (s *Store) PlaceTurns(ctx context.Context, full []uuid.UUID, due time.Time) (placed int64, err error) {
	return s.q.TurnsPlace(ctx, full, due)
}
