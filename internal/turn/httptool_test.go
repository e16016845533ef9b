package turn_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/httptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/turn"
)

// receiver is an HTTP API. Below /later it answers 202, and posts the result afterwards.
type receiver struct {
	post func(ctx context.Context, id, output string) error
	wg   sync.WaitGroup
	t    *testing.T

	mu   sync.Mutex
	seen map[string][]string // paths of the requests, by id
}

func (h *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Webhook-Id")
	_, _ = io.Copy(io.Discard, r.Body)
	h.mu.Lock()
	h.seen[id] = append(h.seen[id], r.URL.Path)
	h.mu.Unlock()
	if !strings.HasPrefix(r.URL.Path, "/later") {
		fmt.Fprint(w, "result of "+r.URL.Path)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if !strings.HasSuffix(r.Header.Get("Parley-Reply-Url"), "/tool-calls/"+id+"/result") {
		h.t.Errorf("the result goes to %q", r.Header.Get("Parley-Reply-Url"))
	}
	h.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range 2 {
			if err := h.post(ctx, id, "result of "+r.URL.Path); err != nil && codeOf(err) == "" {
				h.t.Errorf("post the result of %s: %v", id, err)
			}
		}
	})
}

// withHTTPTools gives replicas the tools of a receiver.
func (w *world) withHTTPTools(t *testing.T, h *receiver) func(*turn.Config) {
	t.Helper()
	var tools []toolset.HTTPTool
	for _, name := range []string{"now", "again", "later", "later_again"} {
		d := toolset.HTTPTool{Name: name, Definition: toolset.Definition{Description: name, HTTP: &toolset.Request{Method: "POST",
			Path: "/" + name, Later: strings.HasPrefix(name, "later")}}}
		d.Annotations.Idempotent = strings.HasSuffix(name, "again")
		tools = append(tools, d)
	}
	store := toolset.NewStore(w.pool)
	if _, err := store.AddHTTP(t.Context(), w.workspace.ID, toolset.Entry{Name: "erp", URL: "https://erp.example"}, tools); err != nil {
		t.Fatal(err)
	}
	authority := egresstest.NewAuthority(t)
	guard, err := egress.New(egress.Config{Roots: authority.Roots(), Allow: []string{"erp.example:443=" + authority.Site(t, h,
		"erp.example")}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *turn.Config) {
		c.Runner = toolenv.New(toolenv.Config{Pool: c.Pool, Vault: c.Vault, Guard: guard, Dir: t.TempDir()})
		sender := httptool.Sender{Sign: c.Callbacks.SignRequest}
		c.OwnTools = func(ctx context.Context, workspace uuid.UUID, run *toolenv.Run) ([]tool.Tool, error) {
			servers, err := store.Usable(ctx, workspace)
			if err != nil {
				return nil, err
			}
			return httptool.Tools(run, nil, sender, servers)
		}
	}
}

// TestTakeoverOfHTTPTools takes a turn with HTTP calls, and with calls whose results are posted
// later, from its worker at each of its events. Each call begins once and has one result. A request
// of a call has its id, and is repeated only if the tool may be.
func TestTakeoverOfHTTPTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	h := &receiver{t: t, seen: make(map[string][]string)}
	change := w.withHTTPTools(t, h)
	replicas := []*replica{w.replica(t, change), w.replica(t, change)}
	h.post = func(ctx context.Context, id, output string) error {
		_, err := replicas[1].turns.PostLater(ctx, w.workspace.ID, "server", result(id, output)[0])
		return err
	}
	t.Cleanup(h.wg.Wait)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const script = "@call erp__now {} erp__later {} erp__again {} erp__later_again {}\n@say Done."
	one := func(at func(st turn.Started, n int)) (all []event.Event, err error) {
		st, err := replicas[0].turns.Start(ctx, turn.Request{Workspace: w.workspace, Command: script})
		if err != nil {
			return nil, err
		}
		for evs, err := range replicas[0].events.Follow(ctx, st.From) {
			if err != nil {
				return all, err
			}
			for _, ev := range evs {
				if ev.Turn != st.Turn {
					continue
				}
				all = append(all, ev)
				if at(st, len(all)); ev.Kind == event.KindDone {
					return all, nil
				}
			}
		}
		return all, ctx.Err()
	}
	whole, err := one(func(turn.Started, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results(whole) {
		if want := "result of /" + []string{"now", "later", "again", "later_again"}[i]; !r.OK || r.Output != want {
			t.Errorf("without a takeover: %+v", r)
		}
	}
	var taken, interrupted atomic.Int64
	var wg sync.WaitGroup
	for k := range len(whole) {
		wg.Go(func() {
			all, err := one(func(st turn.Started, n int) {
				if n == k+1 {
					if err := takeOver(ctx, replicas[1], st, &taken); err != nil {
						t.Error(err)
					}
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
			if len(uses) != 4 || len(list) != 4 || text(all) != "Done." {
				t.Errorf("taken at event %d: %d calls, %d results, the text is %q: %s", k+1, len(uses), len(list), text(all), kinds(all))
			}
			for _, r := range list {
				if !r.OK {
					interrupted.Add(1)
				}
				mayRepeat := strings.HasSuffix(r.Tool, "again")
				if path := "/" + strings.TrimPrefix(r.Tool, "erp__"); uses[r.ToolUseID] != 1 || r.OK && r.Output != "result of "+path ||
					!r.OK && (mayRepeat || r.Output != "interrupted, outcome unknown") {
					t.Errorf("taken at event %d: %s began %d times and has %+v", k+1, r.ToolUseID, uses[r.ToolUseID], r)
				}
				h.mu.Lock()
				requests := slices.Clone(h.seen[r.ToolUseID])
				h.mu.Unlock()
				if n := len(requests); n == 0 && r.OK || n > 1 && !mayRepeat || len(slices.Compact(requests)) > 1 {
					t.Errorf("taken at event %d: %s reached its server with %q", k+1, r.ToolUseID, requests)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d turns were taken over, %d calls have an unknown outcome", taken.Load(), len(whole), interrupted.Load())
	if taken.Load() == 0 {
		t.Error("no turn was taken over")
	}
}

// TestResultsOfHTTPToolsComeOnce posts the result of an accepted call before the turn waits for it,
// again, with another content, and with an id of a call that has a result.
func TestResultsOfHTTPToolsComeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	h := &receiver{t: t, seen: make(map[string][]string)}
	r := w.replica(t, w.withHTTPTools(t, h))
	ids := make(chan string, 1)
	h.post = func(ctx context.Context, id, output string) error {
		_, err := r.turns.PostLater(ctx, w.workspace.ID, "server", result(id, output)[0])
		select {
		case ids <- id:
		default:
		}
		return err
	}
	t.Cleanup(h.wg.Wait)
	st := w.start(t, r, "@call erp__later {}\n@say Done.")
	id := wait.Receive(t, "the result", ids)
	for output, want := range map[string]string{"result of /later": "", "forged": "TOOL_CALL_ANSWERED"} {
		if _, err := r.turns.PostLater(t.Context(), w.workspace.ID, "server", result(id, output)[0]); string(codeOf(err)) != want {
			t.Errorf("%s: %v", output, err)
		}
	}
	if _, err := r.turns.PostLater(t.Context(), w.workspace.ID, "server", result(id+"x", "forged")[0]); codeOf(err) != "TOOL_CALL_NOT_FOUND" {
		t.Errorf("another id: %v", err)
	}
	if list := results(read(t, r, st)); len(list) != 1 || list[0].Output != "result of /later" {
		t.Errorf("%+v", list)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.seen) != 1 {
		t.Errorf("requests: %q", h.seen)
	}
}
