package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// outside runs the calls that Parley does not: as the caller, and as the server that has accepted a
// call.
type outside struct {
	turns *turn.Service
	mu    sync.Mutex
	runs  map[string]int // calls that reached the server
}

func (o *outside) Spec() tool.Spec {
	return tool.Spec{Name: "slow", Schema: json.RawMessage(`{"type":"object"}`), Later: true}
}

func (o *outside) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := c.Await(ctx); err != nil {
		return tool.Result{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[c.ID]++
	return tool.Result{}, tool.Later{}
}

// follow reads a turn, posts the results that it waits for, twice, and calls at with the number of
// each row.
func (o *outside) follow(ctx context.Context, r *replica, w *world, st turn.Started, at func(n int)) (all []event.Event, err error) {
	for evs, err := range r.events.Follow(ctx, st.From) {
		if err != nil {
			return all, err
		}
		for _, ev := range evs {
			if ev.Turn != st.Turn {
				continue
			}
			all = append(all, ev)
			at(len(all))
			body, err := ev.Body()
			if err != nil {
				return all, err
			}
			for range 2 {
				var failed error
				switch b := body.(type) {
				case event.ToolRequired:
					for _, c := range b.Calls {
						_, err := o.turns.PostResults(ctx, w.workspace.ID, st.Session, "caller", result(c.ToolUseID, "mine "+string(c.Input)))
						failed = errors.Join(failed, err)
					}
				case event.ToolLater:
					_, failed = o.turns.PostLater(ctx, w.workspace.ID, "server", result(b.Calls[0].ToolUseID, "slow")[0])
				}
				if failed != nil && codeOf(failed) != fault.ToolCallExpired {
					return all, fmt.Errorf("%s: %w", body.Kind(), failed)
				}
			}
			if ev.Kind == event.KindDone {
				return all, nil
			}
		}
	}
	return all, nil
}

// takeOver takes a turn from its worker, if it has one, and gives it another job.
func takeOver(ctx context.Context, r *replica, st turn.Started, taken *atomic.Int64) error {
	args, err := json.Marshal(map[string]any{"turn_id": st.Turn, "session_id": st.Session})
	if err != nil {
		return err
	}
	return r.sessions.Update(ctx, st.Session, func(tx *session.Tx) error {
		now, err := tx.TurnByID(ctx, st.Turn)
		if err != nil || now.State != session.Running {
			return err
		}
		ok, err := tx.ReleaseTurn(ctx, eventlog.Lease{Session: st.Session, Turn: st.Turn, Epoch: now.Epoch}, event.AfterCrash)
		if err != nil || !ok {
			return err
		}
		taken.Add(1)
		return tx.EnqueueJob(ctx, st.Turn, session.Job{Args: args, Due: time.Now().Add(-time.Minute)})
	})
}

// TestTakeoverAtEveryEvent takes a turn with calls of every kind from its worker at each of its
// events, while the worker goes on until the fence stops it. Each call begins once and has one
// result, the results of the caller are never lost, and a call reaches its server at most once.
func TestTakeoverAtEveryEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	o := &outside{runs: make(map[string]int)}
	w.tools = []tool.Tool{o}
	replicas := []*replica{w.replica(t, nil), w.replica(t, nil)}
	o.turns = replicas[0].turns
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const script = "@call mine {\"n\":1} slow mine {\"n\":2}\n@say Done."
	one := func(at func(st turn.Started, n int)) ([]event.Event, error) {
		st, err := replicas[0].turns.Start(ctx, turn.Request{Workspace: w.workspace, Command: script, Tools: mine})
		if err != nil {
			return nil, err
		}
		return o.follow(ctx, replicas[0], w, st, func(n int) { at(st, n) })
	}
	whole, err := one(func(turn.Started, int) {})
	if err != nil {
		t.Fatal(err)
	}
	var taken atomic.Int64
	var wg sync.WaitGroup
	for k := range 2 * len(whole) {
		k %= len(whole)
		wg.Go(func() {
			all, err := one(func(st turn.Started, n int) {
				if n != k+1 {
					return
				}
				if err := takeOver(ctx, replicas[1], st, &taken); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Errorf("taken at event %d: %v; so far: %s", k+1, err, kinds(all))
				return
			}
			uses := make(map[string]int)
			for _, ev := range all {
				if b, ok := must(ev.Body()).(event.ToolUse); ok {
					uses[b.ToolUseID]++
				}
			}
			list := results(all)
			if len(uses) != 3 || len(list) != 3 || text(all) != "Done." {
				t.Errorf("taken at event %d: %d calls, %d results, the text is %q: %s", k+1, len(uses), len(list), text(all), kinds(all))
			}
			for _, r := range list {
				if uses[r.ToolUseID] != 1 || r.Tool == "mine" && r.Output != `mine {"n":1}` && r.Output != `mine {"n":2}` {
					t.Errorf("taken at event %d: %s began %d times and has %+v", k+1, r.ToolUseID, uses[r.ToolUseID], r)
				}
			}
		})
	}
	wg.Wait()
	if n := taken.Load(); n < 3 { // a turn that waits has no worker, and a quick worker is ahead
		t.Errorf("only %d of %d turns were taken over", n, 2*len(whole))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, n := range o.runs {
		if n != 1 {
			t.Errorf("call %s reached its server %d times", id, n)
		}
	}
}
