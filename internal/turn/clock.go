package turn

import (
	"context"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/parley-server/parley/internal/pulse"
)

// clock estimates PostgreSQL's time for River, which computes the times of retries, pauses and
// scheduled jobs in the process. Only PostgreSQL's clock decides when such a job is due, so a
// process with a clock d seconds ahead would run it d seconds late.
type clock struct{ pulse *pulse.Pulse }

// Now implements rivertype.TimeGenerator.
func (c clock) Now() time.Time { return time.Now().Add(c.pulse.Offset()) }

// NowOrNil implements rivertype.TimeGenerator. Nil makes River's statements use now().
func (c clock) NowOrNil() *time.Time { return nil }

// due is the scheduled time of every job that must run at once. It is in the past on any clock, so
// neither a skew nor a step of a clock can delay such a job. Jobs with one scheduled time are
// fetched in the order of their ids.
var due = time.Unix(0, 0).UTC()

// atOnce is a River hook that makes new jobs due at once. River itself would use the process's
// time.
type atOnce struct{ rivertype.Hook }

// IsHook implements rivertype.Hook.
func (atOnce) IsHook() bool { return true }

// InsertBegin implements rivertype.HookInsertBegin.
func (atOnce) InsertBegin(_ context.Context, job *rivertype.JobInsertParams) error {
	if job.State == rivertype.JobStateAvailable {
		job.ScheduledAt = &due
	}
	job.CreatedAt = new(time.Time) // River's statement replaces the zero time with now()
	return nil
}
