package turn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/callback"
)

const (
	// callbackQueue is a separate queue: slow receivers never delay turns.
	callbackQueue = "callbacks"
	// callbackWorkers is how many callback jobs this process works on at once: those that hold a
	// place for an attempt, and some that check whether a place is free.
	callbackWorkers = callback.Places + 10
)

// callbackArgs is the job of a delivery, from its first attempt to its last. A lost job is replaced
// by another.
type callbackArgs struct {
	Delivery uuid.UUID `json:"delivery_id"`
}

func (callbackArgs) Kind() string { return "callback" }

func (callbackArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: callbackQueue} }

type callbackWorker struct {
	river.WorkerDefaults[callbackArgs]
	s *Service
}

// Work makes one attempt and sleeps until the next.
func (w *callbackWorker) Work(ctx context.Context, job *river.Job[callbackArgs]) error {
	retry, done, err := w.s.cfg.Callbacks.Deliver(w.s.cfg.Tracer.Attach(ctx), job.Args.Delivery, job.ID, w.s.callbackBody)
	switch {
	case err != nil:
		w.s.cfg.Metrics.Callbacks.WithLabelValues("failed").Inc()
		return err
	case done:
		w.s.cfg.Metrics.Callbacks.WithLabelValues("done").Inc()
		return nil
	}
	w.s.cfg.Metrics.Callbacks.WithLabelValues("retry").Inc()
	return river.JobSnooze(retry)
}

// AddCallback registers a callback for an existing turn. If the turn has one of the same name, it
// changes that one.
func (s *Service) AddCallback(ctx context.Context, workspace, session, turn uuid.UUID, c Callback) error {
	return s.cfg.Callbacks.Put(ctx, c.newRow(uuid.Must(uuid.NewV7()), workspace, session, turn))
}

// newRow returns the row of a turn's callback.
func (c Callback) newRow(id, workspace, session, turn uuid.UUID) callback.New {
	return callback.New{ID: id, Workspace: workspace, Session: session, Turn: turn,
		URL: c.URL, Metadata: c.Metadata, Name: c.Name, Protocol: c.Protocol, Auth: c.Auth}
}

// enqueueDelivery gives a delivery a job, in the transaction that makes it due.
func (s *Service) enqueueDelivery(ctx context.Context, tx pgx.Tx, delivery uuid.UUID) error {
	job, err := s.river.InsertTx(ctx, tx, callbackArgs{Delivery: delivery}, nil)
	if err != nil {
		return fmt.Errorf("insert job: %w", err)
	}
	return s.cfg.Callbacks.Assign(ctx, tx, delivery, job.Job.ID)
}

// Redeliver sends the newest report of a callback again; ok is false if it does not have one yet. A
// callback that the workspace does not have is CALLBACK_NOT_FOUND.
func (s *Service) Redeliver(ctx context.Context, workspace, id uuid.UUID) (delivery uuid.UUID, ok bool, err error) {
	err = replan.InTx(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if delivery, ok, err = s.cfg.Callbacks.Redeliver(ctx, tx, workspace, id); err != nil || !ok {
			return err
		}
		return s.enqueueDelivery(ctx, tx, delivery)
	})
	if ok && err == nil {
		s.wakeQueue(callbackQueue)
	}
	return delivery, ok && err == nil, err
}

// redeliverLost gives new jobs to deliveries with a missing or stuck job: of processes that died,
// and of some that are frozen.
func (s *Service) redeliverLost(ctx context.Context) error {
	overdue, err := s.cfg.Callbacks.Overdue(ctx)
	if err != nil || len(overdue) == 0 {
		return err
	}
	ids := make([]int64, len(overdue))
	for i, o := range overdue {
		ids[i] = o.Job
	}
	jobs, err := s.readJobs(ctx, ids)
	if err != nil {
		return err
	}
	alive, err := s.q.NodesAlive(ctx)
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, o := range overdue {
		if s.willRun(jobs[o.Job], o.Ahead, alive) {
			continue
		}
		err := replan.InTx(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
			ok, err := s.cfg.Callbacks.Orphaned(ctx, tx, o)
			if err != nil || !ok {
				return err
			}
			s.log.InfoContext(ctx, "queueing a stranded callback again", "delivery", o.Delivery, "job", o.Job)
			return s.enqueueDelivery(ctx, tx, o.Delivery)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// willRun reports whether the job of a delivery will make an attempt by itself. A job that runs
// while its delivery is overdue will not: an attempt makes its delivery due later. If the clock was
// set back, the delivery is due later anyway, and its job runs for as long as its node lives.
func (s *Service) willRun(j *rivertype.JobRow, ahead bool, alive []int32) bool {
	if j == nil {
		return false
	}
	switch j.State {
	case rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateScheduled:
		return !j.ScheduledAt.After(s.clock.Now().Add(callbackSlack))
	case rivertype.JobStateRunning:
		return ahead && slices.ContainsFunc(alive, func(node int32) bool {
			return len(j.AttemptedBy) > 0 && j.AttemptedBy[len(j.AttemptedBy)-1] == strconv.Itoa(int(node))
		})
	}
	return false
}

// callbackSlack is how far ahead the next run of an overdue delivery's job may be.
const callbackSlack = 5 * time.Second

// readJobs reads River's jobs by their ids; deleted jobs are missing in the result.
func (s *Service) readJobs(ctx context.Context, ids []int64) (map[int64]*rivertype.JobRow, error) {
	list, err := s.river.JobList(ctx, river.NewJobListParams().IDs(ids...).First(len(ids)))
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	jobs := make(map[int64]*rivertype.JobRow, len(list.Jobs))
	for _, j := range list.Jobs {
		jobs[j.ID] = j
	}
	return jobs, nil
}
