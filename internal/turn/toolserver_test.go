package turn_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/turn"
)

// shop is an MCP server that counts the calls that reach it.
type shop struct {
	mu     sync.Mutex
	calls  map[string]int // by tool_use_id
	during map[string]func()
}

// order is the input of the shop's tools; N tells turns apart.
type order struct {
	N int `json:"n"`
}

// serve serves tools that read, that change something, and that may be repeated.
func (s *shop) serve(t *testing.T) (pin string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for _, name := range []string{"find", "book", "put"} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{IdempotentHint: name == "put"}},
			func(_ context.Context, r *mcp.CallToolRequest, o order) (*mcp.CallToolResult, any, error) {
				id, _ := r.Params.Meta["parley/tool-use-id"].(string)
				s.mu.Lock()
				s.calls[id]++
				hook := s.during[fmt.Sprint(name, o.N)]
				delete(s.during, fmt.Sprint(name, o.N))
				s.mu.Unlock()
				if hook != nil {
					hook()
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
			})
	}
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}))
	t.Cleanup(func() {
		for session := range server.Sessions() { // that a worker could not end
			_ = session.Close()
		}
		h.Close()
	})
	return "http://shop.example:80=" + strings.TrimPrefix(h.URL, "http://")
}

// reached counts how often a call reached the server.
func (s *shop) reached(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// interruptCall lets f run while a tool is called with the number n.
func (s *shop) interruptCall(tool string, n int, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.during[fmt.Sprint(tool, n)] = f
}

// addShop registers the server, and returns the change of a configuration that offers its tools.
func (w *world) addShop(t *testing.T, s *shop) func(*turn.Config) {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: []string{s.serve(t)}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store := toolset.NewStore(w.pool)
	add := func(c *turn.Config) {
		c.Permissions = permission.New(c.Pool)
		c.Runner = toolenv.New(toolenv.Config{Pool: c.Pool, Guard: guard, Vault: c.Vault, Files: c.Files, Log: log})
		c.OwnTools = func(ctx context.Context, workspace uuid.UUID, run *toolenv.Run) ([]tool.Tool, error) {
			servers, err := store.Usable(ctx, workspace)
			return mcptool.Tools(run, mcptool.Record{Store: store, Workspace: workspace, Log: log}, nil, servers), err
		}
	}
	cfg := turn.Config{Pool: w.pool}
	w.stores(t, w.pool, &cfg)
	add(&cfg)
	probe := mcptool.Probe{Open: func(workspace uuid.UUID) mcptool.ClosingEnv { return cfg.Runner.OpenProbe(workspace) }}
	e := toolset.Entry{Name: "shop", URL: "http://shop.example/mcp"}
	offers, protocol, err := probe.List(t.Context(), w.workspace.ID, e.Server())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Add(t.Context(), w.workspace.ID, e, protocol, offers); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetTool(t.Context(), w.workspace.ID, "shop", "find", new(toolset.ReadOnly), nil); err != nil {
		t.Fatal(err)
	}
	return add
}

// allowAll reads a turn, allows its questions, and calls at with the number of each row.
func (w *world) allowAll(ctx context.Context, r *replica, st turn.Started, at func(n int)) (all []event.Event, err error) {
	for evs, err := range r.events.Follow(ctx, st.From) {
		if err != nil {
			return all, err
		}
		for _, ev := range evs {
			all = append(all, ev)
			at(len(all))
			body, err := ev.Body()
			if err != nil {
				return all, err
			}
			if ask, ok := body.(event.InputRequired); ok {
				_, err := r.turns.Decide(ctx, w.workspace.ID, turn.Answer{Approval: ask.ApprovalID, Outcome: event.Allowed, Key: "approver"})
				if err != nil {
					return all, err
				}
			}
			if ev.Kind == event.KindDone {
				return all, nil
			}
		}
	}
	return all, nil
}

// TestTakeoverAtEveryEventOfToolServers takes a turn with calls of an MCP server from its worker at
// each of its events and within each call. Each call begins once and has one result. The server gets
// a call again only if that is safe, with the same id.
func TestTakeoverAtEveryEventOfToolServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	s := &shop{calls: make(map[string]int), during: make(map[string]func())}
	add := w.addShop(t, s)
	replicas := []*replica{w.replica(t, add), w.replica(t, add)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var taken atomic.Int64
	// one runs turn n, and takes it over at its event k, or within a call.
	one := func(n, k int, within string) []event.Event {
		started := make(chan turn.Started, 1)
		if within != "" {
			s.interruptCall(within, n, func() {
				if err := takeOver(ctx, replicas[1], <-started, &taken); err != nil {
					t.Error(err)
				}
			})
		}
		script := strings.ReplaceAll("@call shop__find {\"n\":N} shop__book {\"n\":N} shop__put {\"n\":N}\n@say Done.", "N", fmt.Sprint(n))
		st, err := replicas[0].turns.Start(ctx, turn.Request{Workspace: w.workspace, Command: script})
		if err != nil {
			t.Error(err)
			return nil
		}
		started <- st
		all, err := w.allowAll(ctx, replicas[0], st, func(i int) {
			if i != k {
				return
			}
			if err := takeOver(ctx, replicas[1], st, &taken); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Errorf("%v; so far: %s", err, kinds(all))
		}
		return all
	}
	whole := one(0, -1, "")
	s.check(t, "without a takeover", whole, nil)
	var wg sync.WaitGroup
	for k := range whole {
		wg.Go(func() { s.check(t, fmt.Sprintf("taken at event %d", k+1), one(k+1, k+1, ""), nil) })
	}
	for i, c := range []struct {
		within string
		reach  int
	}{{"find", 2}, {"book", 1}, {"put", 2}} {
		wg.Go(func() {
			s.check(t, "taken within "+c.within, one(len(whole)+1+i, -1, c.within), map[string]int{"shop__" + c.within: c.reach})
		})
	}
	wg.Wait()
	if n := taken.Load(); n < 4 { // a turn that waits has no worker, and a quick worker is ahead
		t.Errorf("only %d turns were taken over", n)
	}
}

// check checks the events of a turn, and how often its calls reached the server. want says how often
// the interrupted ones must reach it.
func (s *shop) check(t *testing.T, when string, all []event.Event, want map[string]int) {
	t.Helper()
	uses, decisions := make(map[string]int), 0
	for _, ev := range all {
		switch b := must(ev.Body()).(type) {
		case event.ToolUse:
			uses[b.ToolUseID]++
		case event.Decision:
			decisions++
		}
	}
	list := results(all)
	if len(uses) != 3 || len(list) != 3 || decisions != 1 || text(all) != "Done." {
		t.Errorf("%s: %d calls, %d results, %d decisions, the text is %q: %s", when, len(uses), len(list), decisions, text(all), kinds(all))
	}
	for _, r := range list {
		n := s.reached(r.ToolUseID)
		once := r.Tool == "shop__book"
		if uses[r.ToolUseID] != 1 || once && n > 1 || r.OK && n == 0 || !r.OK && (!once || r.Output != "interrupted, outcome unknown") {
			t.Errorf("%s: %s began %d times, reached the server %d times, and has %+v", when, r.Tool, uses[r.ToolUseID], n, r)
		}
		if n != want[r.Tool] && want[r.Tool] > 0 || once && want[r.Tool] > 0 && r.OK {
			t.Errorf("%s: %s reached the server %d times and has %+v", when, r.Tool, n, r)
		}
	}
}
