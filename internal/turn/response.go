package turn

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// setAgent notes the agent, and the reply of an earlier attempt that continues at the provider.
func (a *attempt) setAgent(ag *agent.Agent, log []event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agent, a.response = ag, openResponse(log)
}

// openResponse returns the response that continues at the provider after the last row of a turn's log,
// or nil.
func openResponse(log []event.Event) (open *event.ModelResponse) {
	for _, ev := range log {
		switch ev.Kind {
		case event.KindReply, event.KindCompacted, event.KindFallback:
			open = nil
		case event.KindResponse:
			if body, err := ev.Body(); err == nil {
				open = new(body.(event.ModelResponse))
			}
		}
	}
	return open
}

// cancelResponse ends the reply that continues at the provider, after the end of its turn.
func (a *attempt) cancelResponse(ctx context.Context) {
	a.mu.Lock()
	ag, open := a.agent, a.response
	a.response = nil
	a.mu.Unlock()
	if ag != nil && open != nil {
		ag.CancelResponse(ctx, *open)
	}
}

// responseArgs is the job that cancels the open response of a turn that was canceled between two
// workers.
type responseArgs struct {
	Turn uuid.UUID `json:"turn_id"`
}

func (responseArgs) Kind() string { return "response_cancel" }

func (responseArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 5} }

type responseWorker struct {
	river.WorkerDefaults[responseArgs]
	s *Service
}

// Work cancels the response, if there is one.
func (w *responseWorker) Work(ctx context.Context, job *river.Job[responseArgs]) error {
	t, err := w.s.cfg.Sessions.TurnByID(ctx, job.Args.Turn)
	if err != nil {
		return err
	}
	log, err := w.s.cfg.Sessions.ReadTurnLog(ctx, t)
	if err != nil {
		return err
	}
	open := openResponse(log.Events)
	if open == nil {
		return nil
	}
	m, err := w.s.cfg.Model(ctx, t.WorkspaceID, open.Model)
	if err != nil {
		return fmt.Errorf("open the model of a response: %w", err)
	}
	(&agent.Agent{Model: m, Log: w.s.log}).CancelResponse(ctx, *open)
	return nil
}

// cancelOpenResponse inserts the job that cancels the response of a turn that no worker has. Only a
// turn that was interrupted can have one.
func (s *Service) cancelOpenResponse(ctx context.Context, tx *session.Tx, t session.Turn) error {
	if t.State != session.Queued || t.AttemptReason == "" {
		return nil
	}
	if _, err := s.river.InsertTx(ctx, tx.Tx, responseArgs{t.ID}, nil); err != nil {
		return fmt.Errorf("insert job: %w", err)
	}
	s.wakeAfter(tx, river.QueueDefault)
	return nil
}
