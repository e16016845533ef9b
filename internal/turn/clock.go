package turn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"
)

const (
	// clockEvery is how often PostgreSQL's clock is read.
	clockEvery = time.Second
	// clockTimeout bounds one reading. A reading that took longer would not be exact.
	clockTimeout = time.Second
)

// clock estimates PostgreSQL's time for River, which computes the times of retries, pauses and
// scheduled jobs in the process. PostgreSQL's clock alone decides when such a job is due, so a
// process whose own clock is d seconds ahead would run it d seconds late.
type clock struct {
	pool   *pgxpool.Pool
	offset atomic.Int64 // nanoseconds by which PostgreSQL's clock is ahead of the process's
}

// Now implements rivertype.TimeGenerator.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// NowOrNil implements rivertype.TimeGenerator. Nil has River's statements use now().
func (c *clock) NowOrNil() *time.Time { return nil }

// run reads PostgreSQL's clock until ctx ends. A failed reading keeps the offset as it was.
func (c *clock) run(ctx context.Context) error {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		c.read(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *clock) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	conn, err := c.pool.Acquire(ctx) // first: the reading must not include the wait for a connection
	if err != nil {
		return
	}
	defer conn.Release()
	var now time.Time
	asked := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return
	}
	took := time.Since(asked)
	c.offset.Store(int64(now.Sub(asked.Add(took / 2))))
}

// due is the scheduled time of every job that is to run at once. It lies in the past on any clock,
// so neither a skew nor a step of a clock can hold up such a job. Jobs with one scheduled time are
// fetched in the order of their ids.
var due = time.Unix(0, 0).UTC()

// atOnce is a hook of River that makes new jobs due. River itself would take the process's time.
type atOnce struct{ rivertype.Hook }

// IsHook implements rivertype.Hook.
func (atOnce) IsHook() bool { return true }

// InsertBegin implements rivertype.HookInsertBegin.
func (atOnce) InsertBegin(_ context.Context, job *rivertype.JobInsertParams) error {
	if job.State == rivertype.JobStateAvailable {
		job.ScheduledAt = &due
	}
	job.CreatedAt = new(time.Time) // River's statement replaces the zero time by now()
	return nil
}
