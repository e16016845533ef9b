// Package agent takes a model and tools through one turn. It knows neither
// database nor network: it reads the turn's log and yields what happens next.
//
// What it yields is committed before it goes on, so the log is a journal: a tool
// call is on record before the tool runs, its result before the model reads it.
// A turn that stopped anywhere is continued by running the agent on its log again.
package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// Agent is a model with its tools.
type Agent struct {
	Model        model.Model
	Tools        []tool.Tool
	Instructions string
	MaxTurns     int // model calls in one turn; at least 1
	Log          *slog.Logger
}

// Conversation is what a turn stands on.
type Conversation struct {
	Workspace uuid.UUID
	Session   uuid.UUID
	Turn      uuid.UUID
	History   []Past        // earlier messages, oldest first
	Budget    int           // tokens of history that the model shall see at most
	Log       []event.Event // this turn's rows so far, text deltas left out
	Tail      string        // text that was shown after the last whole reply in Log
}

// Failure ends a turn with an error event.
type Failure struct {
	Code    event.Code
	Message string
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Run yields groups of events to be committed together, in order. It ends when the
// answer is complete, or with an error: a *Failure, or the cause of ctx's end.
func (a *Agent) Run(ctx context.Context, c Conversation) iter.Seq2[[]event.Body, error] {
	return func(yield func([]event.Body, error) bool) {
		r := &run{Agent: a, c: c, yield: yield}
		err := r.work(ctx)
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped says that the consumer has broken off.
var errStopped = errors.New("stopped")

// run is one pass of Run.
type run struct {
	*Agent
	c     Conversation
	yield func([]event.Body, error) bool
	state state
}

// emit hands events to the consumer, who commits them.
func (r *run) emit(bodies ...event.Body) error {
	if !r.yield(bodies, nil) {
		return errStopped
	}
	return nil
}

func (r *run) work(ctx context.Context) error {
	var err error
	if r.state, err = rebuild(r.c.Log); err != nil {
		return err
	}
	system, messages := r.prompt()
	partial := r.c.Tail
	for {
		for _, s := range r.state.steps[r.state.told:] {
			if err := r.settle(ctx, s); err != nil {
				return err
			}
			messages = append(messages, s.messages()...)
			r.state.told++
		}
		if r.state.finished() {
			return nil
		}
		if len(r.state.steps) >= r.MaxTurns {
			return &Failure{event.MaxTurnsExceeded, fmt.Sprintf("The turn used its %d model calls without an answer.", r.MaxTurns)}
		}
		reply, err := r.generate(ctx, model.Request{System: system, Messages: messages, Tools: r.specs(), Partial: partial})
		if err != nil {
			return err
		}
		partial = ""
		if err := r.emit(reply); err != nil {
			return err
		}
		r.state.steps = append(r.state.steps, &step{reply: reply})
	}
}

// specs is what the model is told about the tools.
func (r *run) specs() []model.Tool {
	specs := make([]model.Tool, len(r.Tools))
	for i, t := range r.Tools {
		s := t.Spec()
		specs[i] = model.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema}
	}
	return specs
}
