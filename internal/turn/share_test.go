package turn_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// TestWorkspaceLeavesPlacesForTurns starts more long turns in one workspace than a process runs at
// once, and then one turn in another workspace.
func TestWorkspaceLeavesPlacesForTurns(t *testing.T) {
	t.Parallel()
	const places, started = 8, 12
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	r := w.replica(t, func(c *turn.Config) { c.Workers = places; c.Grace = 10 * time.Millisecond })
	var all []turn.Started
	for range started {
		all = append(all, w.start(t, r, "book it"))
	}
	for range places * 3 / 4 {
		select {
		case <-l.entered:
		case <-time.After(time.Minute):
			t.Fatal("the long turns have not started")
		}
	}
	ws, err := workspace.New(w.pool).Create(t.Context(), "other", "", "")
	if err != nil {
		t.Fatal(err)
	}
	other := *w
	other.workspace = ws
	began := time.Now()
	st := other.start(t, r, "book it")
	for {
		var state session.State
		if err := w.pool.QueryRow(t.Context(), `SELECT state FROM turns WHERE id = $1`, st.Turn).Scan(&state); err != nil {
			t.Fatal(err)
		}
		if state == session.Running {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("the other workspace's turn is %s after %s", state, time.Since(began))
		}
	}
	t.Logf("the other workspace's turn ran after %s", time.Since(began))
	for range started + 1 {
		l.leave <- struct{}{}
	}
	for _, st := range append(all, st) {
		if got := text(read(t, r, st)); got != "Let me see. \n\nAll done." {
			t.Errorf("text %q", got)
		}
	}
}

// TestWorkspaceLeavesPlacesForModelCalls lets the model of one workspace hang in the maximum number
// of calls, and then calls the model of another workspace.
func TestWorkspaceLeavesPlacesForModelCalls(t *testing.T) {
	t.Parallel()
	const places, started = 4, 6
	w := newWorld(t, modeltest.Say("hi"))
	hanging := &hangingModel{Model: w.model, asked: make(chan struct{}, started), leave: make(chan struct{})}
	w.model = hanging
	r := w.replica(t, func(c *turn.Config) { c.ModelCalls = places })
	var all []turn.Started
	for range started {
		all = append(all, w.start(t, r, "hang"))
	}
	for range places - 1 {
		select {
		case <-hanging.asked:
		case <-time.After(time.Minute):
			t.Fatal("the model was not called")
		}
	}
	ws, err := workspace.New(w.pool).Create(t.Context(), "other", "", "")
	if err != nil {
		t.Fatal(err)
	}
	other := *w
	other.workspace = ws
	if got := text(read(t, r, other.start(t, r, "hello"))); got != "hi" {
		t.Errorf("text %q", got)
	}
	select {
	case <-hanging.asked:
		t.Error("the first workspace has every place")
	default:
	}
	close(hanging.leave)
	for _, st := range all {
		if got := text(read(t, r, st)); got != "hi" {
			t.Errorf("text %q", got)
		}
	}
}

// hangingModel waits before it answers "hang".
type hangingModel struct {
	model.Model
	asked chan struct{}
	leave chan struct{}
}

func (m *hangingModel) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if req.Messages[len(req.Messages)-1].Text == "hang" {
			m.asked <- struct{}{}
			select {
			case <-m.leave:
			case <-ctx.Done():
			}
		}
		m.Model.Generate(ctx, req)(yield)
	}
}
