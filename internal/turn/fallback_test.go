package turn_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// oneModel answers, unless its name is down/model.
type oneModel string

// Name implements model.Model.
func (m oneModel) Name() string { return string(m) }

// Generate implements model.Model.
func (m oneModel) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m == "down/model" {
			yield(model.Chunk{}, &model.Error{Code: event.ModelError, Message: "down", Admin: true, Err: errors.New("down")})
		} else if yield(model.Chunk{Text: "I am " + string(m)}, nil) {
			yield(model.Chunk{Stop: model.StopEnd, Usage: &model.Usage{}}, nil)
		}
	}
}

// TestFallbackModelsOfAgentsAndWorkspaces changes the fallback models of a workspace and of its agent
// in another process. The next turn has them, and those of the agent's version precede.
func TestFallbackModelsOfAgentsAndWorkspaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	r := w.replica(t, func(c *turn.Config) {
		c.DefaultModel = "down/model"
		c.Model = func(_ context.Context, _ uuid.UUID, name string) (model.Model, error) { return oneModel(name), nil }
	})
	elsewhere, agents := workspace.New(w.pool), agent.New(w.pool)
	for _, step := range []struct {
		ofWorkspace, ofAgent []string
		answers              string // "": the turn fails
	}{
		{nil, nil, ""},
		{[]string{"a/model", "b/model"}, nil, "a/model"},
		{[]string{"b/model", "a/model"}, nil, "b/model"},
		{[]string{"b/model"}, []string{"down/model", "c/model"}, "c/model"},
		{[]string{"b/model"}, []string{}, ""},
		{[]string{}, nil, ""},
	} {
		if _, err := elsewhere.Update(t.Context(), w.workspace.ID, workspace.Change{FallbackModels: &step.ofWorkspace}); err != nil {
			t.Fatal(err)
		}
		d := agent.Defaults()
		d.Fallbacks = step.ofAgent
		if _, err := agents.PublishDefinition(t.Context(), agent.Edit{Workspace: w.workspace.ID}, d, ""); err != nil {
			t.Fatal(err)
		}
		evs := read(t, r, w.start(t, r, "go"))
		if step.answers == "" {
			if failure(evs) != event.ModelError {
				t.Errorf("%+v: %s", step, kinds(evs))
			}
		} else if got := text(evs); got != "I am "+step.answers {
			t.Errorf("%+v: %q", step, got)
		}
	}
}
