package turn_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// TestATurnWithoutTimeLeftEnds starts an attempt of a turn whose earlier attempts used up its time,
// as after a worker that died at the last moment.
func TestATurnWithoutTimeLeftEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("too late"))
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	st := w.start(t, idle, "hello")
	if _, err := w.pool.Exec(t.Context(), `UPDATE turns SET active_seconds = max_response_seconds`); err != nil {
		t.Fatal(err)
	}
	evs := read(t, w.replica(t, nil), st)
	if got := kinds(evs); got != "open started error done" || failure(evs) != event.TimedOut {
		t.Errorf("%s, %s", got, failure(evs))
	}
}

// TestInterruptStopsTheWorker sends a message into a session whose turn waits for a tool, on the
// replica that runs the turn and on another one. No lease is renewed meanwhile.
func TestInterruptStopsTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	slow := func(c *turn.Config) { c.Lease = time.Hour }
	here, there := w.replica(t, slow), w.replica(t, func(c *turn.Config) { slow(c); c.Workers = 0 })
	for _, r := range []*replica{here, there} {
		st := w.start(t, r, "book it")
		wait.Receive(t, "a call of the tool", l.entered)
		req := turn.Request{Workspace: w.workspace, Session: st.Session, Command: "book that", Multitask: turn.Interrupt}
		next, err := r.turns.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		w.halts(t, st.Turn)
		wait.Receive(t, "a call of the tool", l.entered)
		l.leave <- struct{}{}
		if got := text(read(t, r, next)); got != "Let me see. \n\nAll done." {
			t.Errorf("the next answer is %q", got)
		}
	}
}

// halts waits until the worker of a canceled turn has confirmed its stop.
func (w *world) halts(t *testing.T, id uuid.UUID) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for halted := false; !halted; {
		if err := w.pool.QueryRow(t.Context(), `SELECT halted_at IS NOT NULL FROM turns WHERE id = $1`, id).Scan(&halted); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the worker did not stop")
		}
	}
}

// endless is a model that writes text until its reader stops.
type endless struct {
	written chan int
	stopped chan struct{}
}

func (endless) Name() string { return "test/endless" }

func (m endless) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		defer close(m.stopped)
		for i := 0; ; i++ {
			select {
			case m.written <- i:
			default:
			}
			if !yield(model.Chunk{Text: fmt.Sprintf("%d ", i)}, nil) {
				return
			}
		}
	}
}

// TestStopWhileTheLogIsBusy stops a process whose turn waits for its text to be committed. The turn
// is handed over after the grace period, and its stored text is a prefix of the model's text.
func TestStopWhileTheLogIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	m := endless{written: make(chan int), stopped: make(chan struct{})}
	w.model = m
	r := w.replica(t, func(c *turn.Config) { c.Grace = 10 * time.Millisecond })
	st := w.start(t, r, "go")
	wait.Receive(t, "the written deltas", m.written) // the turn runs

	lock, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := lock.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, st.Session); err != nil {
		t.Fatal(err)
	}
	for held := false; !held; { // until no more deltas are requested
		select {
		case <-m.written:
		case <-time.After(200 * time.Millisecond):
			held = true
		}
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	wait.Receive(t, "the end of the model call", m.stopped)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Receive(t, "the stop", stopped)
	var state, stored string
	if err := w.pool.QueryRow(t.Context(),
		`SELECT state, (SELECT coalesce(string_agg(data->>'text', '' ORDER BY seq), '') FROM events WHERE turn_id = t.id AND delta)
		FROM turns t WHERE id = $1`, st.Turn).Scan(&state, &stored); err != nil {
		t.Fatal(err)
	}
	if state != string(session.Queued) {
		t.Errorf("the turn is %s", state)
	}
	var said strings.Builder
	for i := 0; said.Len() < len(stored); i++ {
		fmt.Fprintf(&said, "%d ", i)
	}
	if said.String() != stored {
		t.Errorf("the log contains text that the model did not write")
	}
}

// idling is a model that writes nothing until its request ends.
type idling struct{ begun, ended chan struct{} }

func (idling) Name() string { return "test/idling" }

func (m idling) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		m.begun <- struct{}{}
		<-ctx.Done()
		m.ended <- struct{}{}
		yield(model.Chunk{}, ctx.Err())
	}
}

// TestTurnClaimedByAStoppingProcess lets a process claim a turn after it has handed its turns over.
// That one is handed over as well.
func TestTurnClaimedByAStoppingProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	m := idling{begun: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	w.model = m
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	late := w.start(t, idle, "go")
	lock, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := lock.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, late.Session); err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, func(c *turn.Config) {
		c.Grace = 10 * time.Millisecond
		c.Model = func(ctx context.Context, _ uuid.UUID, _ string) (model.Model, error) { return m, ctx.Err() }
	})
	w.start(t, r, "go")
	wait.Receive(t, "a model call", m.begun)
	w.await(t, "a worker waits for the session", `SELECT count(*) = 2 FROM river_job WHERE state = 'running' AND kind = 'turn'`)
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	wait.Receive(t, "the end of the model call", m.ended) // the process hands over what it has
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Receive(t, "the stop", stopped)
	w.await(t, "the late turn was claimed and is queued again", `SELECT state = 'queued' AND epoch > 0 FROM turns WHERE id = $1`, late.Turn)
}

// panicking is a model that panics.
type panicking struct{}

func (panicking) Name() string { return "test/panicking" }

func (panicking) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	panic("the model broke its contract")
}

// TestPanicEndsTheTurn makes the worker of a turn panic: the turn fails at once, and the log
// contains the message and the stack.
func TestPanicEndsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = panicking{}
	var logged bytes.Buffer
	r := w.replica(t, func(c *turn.Config) { c.Log = slog.New(slog.NewJSONHandler(&logged, nil)) })
	evs := read(t, r, w.start(t, r, "go"))
	if got := failure(evs); got != event.InternalError {
		t.Errorf("the turn ended by %q: %s", got, kinds(evs))
	}
	r.stop()
	for _, part := range []string{"the model broke its contract", "panicking.Generate"} {
		if !strings.Contains(logged.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, logged.String())
		}
	}
}

// TestEveryCallHasOneResult cancels a turn, and lets another turn run out of time, while a tool
// runs.
func TestEveryCallHasOneResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	r := w.replica(t, nil)
	for _, c := range []struct {
		seconds int
		end     func(turn.Started)
		output  string
	}{
		{600, func(st turn.Started) {
			if c, err := r.turns.Cancel(t.Context(), w.workspace.ID, st.Session); err != nil || !c.Canceled {
				t.Errorf("cancel: %+v, %v", c, err)
			}
		}, "canceled"},
		{1, func(turn.Started) {}, "interrupted, outcome unknown"},
	} {
		st, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "book it",
			Limits: turn.Limits{MaxResponseSeconds: c.seconds}})
		if err != nil {
			t.Fatal(err)
		}
		wait.Receive(t, "a call of the tool", l.entered)
		c.end(st)
		var uses, results []string
		for _, ev := range read(t, r, st) {
			switch b := must(ev.Body()).(type) {
			case event.ToolUse:
				uses = append(uses, b.ToolUseID)
			case event.ToolResult:
				results = append(results, b.ToolUseID)
				if b.OK || b.Output != c.output {
					t.Errorf("result %+v, want %q", b, c.output)
				}
			}
		}
		if len(uses) != 1 || !slices.Equal(uses, results) {
			t.Errorf("calls %q have the results %q", uses, results)
		}
	}
}
