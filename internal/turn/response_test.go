package turn_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// backgroundWorld returns a world whose model has background responses, the first of which stops after
// some frames.
func backgroundWorld(t *testing.T, hold int) (*world, *modeltest.Background) {
	t.Helper()
	b := &modeltest.Background{Reply: func(n int) modeltest.Reply {
		return modeltest.Reply{Text: []string{fmt.Sprintf("Response %d: ", n), "one ", "two ", "three."}, Hold: hold}
	}}
	srv := b.Serve()
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	w := newWorld(t, modeltest.Say("unused"))
	w.model = openai.New(openai.Config{Model: "gpt-5-mini", BaseURL: srv.URL + "/v1", Background: true})
	return w, b
}

// until reads a turn until an event is in its log.
func until(t *testing.T, r *replica, st turn.Started, holds func(event.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for evs, err := range r.events.Follow(ctx, st.From) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range evs {
			if holds(ev) {
				return
			}
		}
	}
	t.Fatal("the log ended")
}

// TestBackgroundResponses takes a turn from its worker in the middle of a background response: the next
// worker shows the rest of it, and it was generated once.
func TestBackgroundResponses(t *testing.T) {
	t.Parallel()
	w, b := backgroundWorld(t, 4)
	first, second := w.replica(t, nil), w.replica(t, nil)
	st := w.start(t, first, "Hi")
	until(t, first, st, func(ev event.Event) bool { return ev.Kind == event.KindText })
	var taken atomic.Int64
	if err := takeOver(t.Context(), second, st, &taken); err != nil || taken.Load() != 1 {
		t.Fatal(taken.Load(), err)
	}
	if got := text(read(t, first, st)); got != "Response 1: one two three." {
		t.Errorf("the text is %q", got)
	}
	if begun, again, canceled := b.Counts(); begun != 1 || again == 0 || canceled != nil {
		t.Errorf("%d responses, %d readings, canceled %v", begun, again, canceled)
	}
}

// TestBackgroundResponseIsCanceled checks that the end of a turn ends its response.
func TestBackgroundResponseIsCanceled(t *testing.T) {
	t.Parallel()
	w, b := backgroundWorld(t, 4)
	r := w.replica(t, nil)
	st := w.start(t, r, "Hi")
	until(t, r, st, func(ev event.Event) bool { return ev.Kind == event.KindText })
	if c, err := r.turns.Cancel(t.Context(), w.workspace.ID, st.Session); err != nil || !c.Canceled {
		t.Fatal(c, err)
	}
	wait.For(t, "the response is canceled", func() bool {
		_, _, canceled := b.Counts()
		return fmt.Sprint(canceled) == "[resp_1]"
	})
}

// TestResponseIsCanceledBetweenWorkers cancels a turn that was handed over and that no worker has. The
// next replica cancels its response.
func TestResponseIsCanceledBetweenWorkers(t *testing.T) {
	t.Parallel()
	w, b := backgroundWorld(t, 4)
	first := w.replica(t, nil)
	st := w.start(t, first, "Hi")
	until(t, first, st, func(ev event.Event) bool { return ev.Kind == event.KindText })
	first.turns.HandOverNow()
	first.stop()
	idle := w.replica(t, func(cfg *turn.Config) { cfg.Workers = 0 })
	if c, err := idle.turns.Cancel(t.Context(), w.workspace.ID, st.Session); err != nil || c != (turn.Canceled{Canceled: true}) {
		t.Fatal(c, err)
	}
	if begun, _, canceled := b.Counts(); begun != 1 || canceled != nil {
		t.Errorf("%d responses, canceled %v", begun, canceled)
	}
	w.replica(t, nil)
	wait.For(t, "the response is canceled", func() bool {
		_, _, canceled := b.Counts()
		return fmt.Sprint(canceled) == "[resp_1]"
	})
}

// TestEndedResponseIsNotCanceled ends a turn with a response that has failed at the provider.
func TestEndedResponseIsNotCanceled(t *testing.T) {
	t.Parallel()
	w, b := backgroundWorld(t, 0)
	b.Reply = func(int) modeltest.Reply {
		created := map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}}
		failed := map[string]any{"type": "response.failed", "response": map[string]any{"id": "resp_1",
			"error": map[string]any{"code": "invalid_prompt", "message": "no"}}}
		return modeltest.Reply{Frames: []string{modeltest.Named("response.created", created), modeltest.Named("response.failed", failed)}}
	}
	r := w.replica(t, nil)
	st := w.start(t, r, "Hi")
	until(t, r, st, func(ev event.Event) bool { return ev.Kind == event.KindDone })
	wait.For(t, "the worker has stopped", func() bool { return r.turns.Running() == 0 })
	if begun, _, canceled := b.Counts(); begun != 1 || canceled != nil {
		t.Errorf("%d responses, canceled %v", begun, canceled)
	}
}

// stuck is a reader whose first request after a summary waits for the end of its worker.
type stuck struct {
	reader
	once  sync.Once
	held  chan model.Request
	after chan model.Request
}

func (m *stuck) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	if !strings.HasPrefix(req.Messages[0].Text, "<summary ") {
		return m.reader.Generate(ctx, req)
	}
	first := false
	m.once.Do(func() { first = true })
	if !first {
		select {
		case m.after <- req:
		default:
		}
		return m.reader.Generate(ctx, req)
	}
	m.held <- req
	return func(yield func(model.Chunk, error) bool) {
		<-ctx.Done()
		yield(model.Chunk{}, context.Cause(ctx))
	}
}

// TestTakeoverAfterASummary takes a turn from its worker between a summary and the request that
// follows it. The next worker sends the request that the first one would have, and its hash is the
// recorded one.
func TestTakeoverAfterASummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	m := &stuck{held: make(chan model.Request, 1), after: make(chan model.Request, 1)}
	w.model, w.tools = m, []tool.Tool{pages{}}
	first, second := w.replica(t, smallWindow), w.replica(t, smallWindow)
	st := w.start(t, first, "look")
	lost := wait.Receive(t, "the request after the summary", m.held)
	var taken atomic.Int64
	if err := takeOver(t.Context(), second, st, &taken); err != nil || taken.Load() != 1 {
		t.Fatal(taken.Load(), err)
	}
	read(t, first, st)
	next := wait.Receive(t, "the request of the next worker", m.after)
	lost.CacheKey, next.CacheKey = "", ""
	if diff := cmp.Diff(lost, next); diff != "" {
		t.Errorf("the next worker sends another request:\n%s", diff)
	}
	checkContexts(t, w, first, st.Session)
}
