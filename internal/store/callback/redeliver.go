package callback

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
)

// Redeliver restarts the newest delivery of a callback, whatever its outcome, and enables a
// disabled callback; ok is false if the callback has no report yet. The caller inserts a job as for
// Report. A callback that the workspace does not have is CALLBACK_NOT_FOUND.
func (s *Store) Redeliver(ctx context.Context, tx pgx.Tx, workspace, id uuid.UUID) (delivery uuid.UUID, ok bool, err error) {
	q := s.q.WithTx(tx)
	if _, err := q.CallbackLock(ctx, workspace, id); errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, notFound()
	} else if err != nil {
		return uuid.Nil, false, fmt.Errorf("lock callback: %w", err)
	}
	if err := q.CallbackEnable(ctx, workspace, id); err != nil {
		return uuid.Nil, false, fmt.Errorf("enable callback: %w", err)
	}
	delivery, err = q.DeliveryAgain(ctx, workspace, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("begin delivery anew: %w", err)
	}
	return delivery, true, nil
}

func notFound() error {
	return fault.New(fault.CallbackNotFound, "No such callback in this workspace.")
}

// Overdue is a delivery that no worker began in time, and its job.
type Overdue struct {
	Delivery uuid.UUID
	Job      int64 // 0: none
	Ahead    bool  // it is not late: PostgreSQL's clock was set back after its last attempt
}

// Overdue lists deliveries with a possibly lost job. A job that waits behind others is not lost:
// the caller checks.
func (s *Store) Overdue(ctx context.Context) ([]Overdue, error) {
	rows, err := s.q.DeliveriesOverdue(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for overdue deliveries: %w", err)
	}
	list := make([]Overdue, len(rows))
	for i, r := range rows {
		list[i] = Overdue{r.ID, r.JobID, r.Ahead}
	}
	return list, nil
}

// Orphaned locks a delivery that still has that job; ok is false
// if another replica was first.
func (s *Store) Orphaned(ctx context.Context, tx pgx.Tx, o Overdue) (ok bool, err error) {
	_, err = s.q.WithTx(tx).DeliveryOrphaned(ctx, o.Delivery, o.Job, o.Ahead)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock delivery: %w", err)
	}
	return true, nil
}
