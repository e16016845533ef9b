package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/session"
)

// queue is the River queue of turns.
const queue = "turns"

// args are the arguments of a turn's job. They hold ids only: no content belongs in a table of
// jobs.
type args struct {
	Turn    uuid.UUID `json:"turn_id"`
	Session uuid.UUID `json:"session_id"`
}

func (args) Kind() string { return "turn" }

func (args) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: queue} }

// jobOf returns the job of a turn, due at once. The statements that queue a turn insert it.
func jobOf(turn, in uuid.UUID) (session.Job, error) {
	data, err := json.Marshal(args{turn, in})
	if err != nil {
		return session.Job{}, fmt.Errorf("encode the turn's job: %w", err)
	}
	return session.Job{Args: data, Due: due}, nil
}

type worker struct {
	river.WorkerDefaults[args]
	s *Service
}

// Work runs a turn. The job ends with the turn, whether it succeeds or fails; an error means that
// the turn could not even be claimed, and River retries.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	w.s.busy.Add(1)
	defer w.s.busy.Add(-1)
	return w.s.runTurn(ctx, job.Args)
}

// NextRetry returns a time one second later, however often a claim has failed: River's own pauses
// grow to minutes.
func (w *worker) NextRetry(*river.Job[args]) time.Time { return w.s.clock.Now().Add(time.Second) }

// redactErrors keeps error texts and panics out of river_job.errors, where secrets and
// conversations could otherwise be stored. The service's own log has them.
func redactErrors(log *slog.Logger) []rivertype.Middleware {
	return []rivertype.Middleware{river.WorkerMiddlewareFunc(
		func(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) (err error) {
			defer func() {
				if p := recover(); p != nil {
					log.ErrorContext(ctx, "job panicked", "job", job.ID, "kind", job.Kind, "panic", panicText(p), "stack", string(debug.Stack()))
					err = errRedacted
				}
			}()
			err = work(ctx)
			_, later := errors.AsType[*river.JobSnoozeError](err)
			if err == nil || later || errors.Is(err, context.Canceled) {
				return err
			}
			log.ErrorContext(ctx, "a job failed", "job", job.ID, "kind", job.Kind, "err", err)
			return errRedacted
		})}
}

// panicText returns the loggable text of a panic outside a turn, where the secrets are not known:
// the text of the Go runtime's own errors, else the type.
func panicText(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", p)
}

var errRedacted = errors.New("failed; see the service's log")

// riverLog forwards River's warnings and drops its routine messages. River logs each failed
// statement of each of its parts, so an outage of the database would fill the log.
type riverLog struct {
	slog.Handler
	failures *outage.Log
}

func (h riverLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// failedStatement finds the messages of River about a failed statement, such as "Producer: Error
// fetching jobs", with its error in an attribute.
var failedStatement = regexp.MustCompile(`: (Error |Completer error|Too many errors)`)

// Handle implements slog.Handler.
func (h riverLog) Handle(ctx context.Context, r slog.Record) error {
	if !failedStatement.MatchString(r.Message) {
		return h.Handler.Handle(ctx, r)
	}
	err := errors.New(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" || a.Key == "error" {
			err = fmt.Errorf("%s: %v", r.Message, a.Value)
			if cause, ok := a.Value.Any().(error); ok {
				err = fmt.Errorf("%s: %w", r.Message, cause)
			}
		}
		return true
	})
	h.failures.Note(context.WithoutCancel(ctx), err)
	return nil
}
