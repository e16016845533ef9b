package turn

import (
	"context"
	"errors"
	"time"

	"github.com/parley-server/parley/internal/event"
)

// A stopping process lets each turn finish its step, which is a model call or a tool call, and then
// hands the turn over: the model call is paid once, and the tool's result is known.

// stopAfterStep stops the attempt as soon as it is between two steps.
func (a *attempt) stopAfterStep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
	a.stopBetweenSteps()
}

// stopBetweenSteps requires mu.
func (a *attempt) stopBetweenSteps() {
	if a.draining && !a.inStep {
		a.cancel(errDrain)
	}
}

// beginModelCall fails if the attempt must not begin another step.
func (a *attempt) beginModelCall() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		a.cancel(errDrain)
		return errDrain
	}
	a.inStep = true
	return nil
}

// failModelCall ends a step without a reply: another process can make the next attempt.
func (a *attempt) failModelCall() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inStep = false
	a.stopBetweenSteps()
}

// noteEvents follows the events of the attempt after their commit.
func (a *attempt) noteEvents(bodies []event.Body) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range bodies {
		switch b := b.(type) {
		case event.Text:
			if a.first.IsZero() {
				a.first = time.Now()
			}
		case event.ModelResponse:
			a.response = &b
		case event.ModelFallback:
			a.response = nil
		case event.Compacted:
			a.response = nil
			a.counts.countUsage(b.Usage)
		case event.Reply:
			a.response = nil
			a.counts.countUsage(b.Usage)
			a.inStep = len(b.Calls) == 0 // usually the last reply: its turn ends here
		case event.ToolUse:
			a.inStep, a.toolAt = true, time.Now()
		case event.ToolResult:
			a.counts.countTool(b, a.toolAt)
			a.inStep, a.toolAt = false, time.Time{}
		}
	}
	a.stopBetweenSteps()
}

// HandOverNow makes a stopping process hand its turns over without waiting for their steps. Call it
// at most once.
func (s *Service) HandOverNow() { close(s.hurried) }

// handOver stops claiming turns and hands the running ones over, each after its step, and all at the
// end of the grace period.
func (s *Service) handOver() error {
	if s.cfg.Workers == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Grace)
	defer cancel()
	draining := make(chan struct{})
	go func() {
		defer close(draining)
		// A turn that is claimed while River stops is handed over in the next round.
		for ctx.Err() == nil {
			for _, a := range s.listAttempts() {
				a.stopAfterStep()
			}
			select {
			case <-ctx.Done():
			case <-s.hurried:
				cancel()
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	err := s.river.Stop(ctx)
	over := err != nil && ctx.Err() != nil
	cancel()
	<-draining
	if over {
		for _, a := range s.listAttempts() {
			a.cancel(errDrain)
		}
		hard, stop := context.WithTimeout(context.Background(), HardStop)
		defer stop()
		err = s.river.StopAndCancel(hard)
	}
	if err != nil {
		return errors.Join(errors.New("stop River"), err)
	}
	return nil
}

// HardStop is how long the hand-over takes at most after the grace period.
const HardStop = 3 * time.Second
