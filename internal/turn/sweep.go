package turn

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// strandedTurns lists the queued turns that no worker will claim, oldest first. The job of such a
// turn is missing or has ended, or a dead node holds it, or it was fetched five seconds ago without
// a claim (the response to the fetch was lost, and River considers the job running), or it is due
// only later (after a failed attempt or with a wrong clock). All times are on PostgreSQL's clock;
// times in its future are from before it was set back.
const strandedTurns = `
SELECT t.id, t.session_id, t.job_id
FROM turns t LEFT JOIN river_job j ON j.id = t.job_id
WHERE t.state = 'queued' AND t.job_id IS NOT NULL AND t.state_at NOT BETWEEN clock_timestamp() - interval '1 second'
    AND clock_timestamp() + interval '1 second'
  AND (j.id IS NULL OR j.state IN ('cancelled', 'completed', 'discarded')
    OR j.state = 'running' AND (j.attempted_at NOT BETWEEN clock_timestamp() - interval '5 seconds'
        AND clock_timestamp() + interval '5 seconds'
                                OR j.attempted_by[cardinality(j.attempted_by)] <> ALL (SELECT nodes_alive()::text))
    OR j.state <> 'running' AND j.scheduled_at > clock_timestamp() + interval '5 seconds')
ORDER BY t.state_at LIMIT 500`

type strandedTurn struct {
	Turn, Session uuid.UUID
	Job           int64
}

// sweepStranded gives every stranded turn a new job. The old job may still run: a job is only a
// trigger, and the second worker finds the turn claimed and does nothing.
func (s *Service) sweepStranded(ctx context.Context) error {
	rows, err := s.cfg.Pool.Query(ctx, strandedTurns)
	if err != nil {
		return fmt.Errorf("list stranded turns: %w", err)
	}
	turns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[strandedTurn])
	if err != nil {
		return fmt.Errorf("list stranded turns: %w", err)
	}
	var failed []error
	for _, t := range turns {
		s.log.InfoContext(ctx, "queueing a stranded turn again", "session", t.Session, "turn", t.Turn, "job", t.Job)
		failed = append(failed, s.requeueTurn(ctx, t.Session, t.Turn, &t.Job))
	}
	return errors.Join(failed...)
}
