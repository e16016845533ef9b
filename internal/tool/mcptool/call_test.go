package mcptool_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
)

type question struct {
	Name string `json:"name"`
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// TestToolsOfARealServer calls tools of a server of the official SDK, with a credential.
func TestToolsOfARealServer(t *testing.T) {
	t.Parallel()
	var bearer, sessions atomic.Value
	bearer.Store("")
	sessions.Store("")
	server := served(func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Find a customer.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, map[string]string, error) {
				return nil, map[string]string{"customer": q.Name, "echo": bearer.Load().(string)}, nil
			})
		mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, question) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("no such customer")
		})
		mcp.AddTool(s, &mcp.Tool{Name: "media"}, func(context.Context, *mcp.CallToolRequest, question) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "See:"},
				&mcp.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG")},
				&mcp.ResourceLink{URI: "crm://7", Name: "seven"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "crm://8", Text: "eight"}},
			}}, nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "long"}, func(context.Context, *mcp.CallToolRequest, question) (*mcp.CallToolResult, any, error) {
			return text(strings.Repeat("é", 40<<10)), nil, nil
		})
	})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		bearer.Store(r.Header.Get("Authorization"))
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			sessions.Store(id)
		}
		server.ServeHTTP(rw, r)
	}))
	added := w.add(t, crm)
	if len(added.Tools) != 4 || added.Protocol == "" || !added.Tools[1].Definition.Annotations.ReadOnly ||
		added.Tools[1].Label != toolset.Changes {
		t.Fatalf("%+v", added)
	}
	run := w.run(t)
	tools := w.tools(t, run)
	find := call(t, t.Context(), tools["crm__find"], `{"name":"Ada"}`)
	if !find.OK || find.Output != `{"customer":"Ada","echo":"Bearer [secret:CRM_TOKEN]"}` || bearer.Load() != "Bearer "+token {
		t.Errorf("%+v with %q", find, bearer.Load())
	}
	if got := call(t, t.Context(), tools["crm__fail"], `{"name":"x"}`); got.OK || got.Output != "no such customer" {
		t.Errorf("%+v", got)
	}
	if got := call(t, t.Context(), tools["crm__find"], `{"name":1}`); got.OK || !strings.Contains(got.Output, "name") {
		t.Errorf("invalid input: %+v", got)
	}
	media := call(t, t.Context(), tools["crm__media"], `{"name":"x"}`)
	if want := "See:\n[image, image/png: all of it is in /workspace/tool-results/crm__media-1.png]\n[resource \"seven\": " +
		"crm://7]\n[resource crm://8]\neight"; media.Output != want {
		t.Errorf("%q", media.Output)
	}
	long := call(t, t.Context(), tools["crm__long"], `{"name":"x"}`)
	if len(long.Output) != 80<<10 { // the agent shortens it
		t.Errorf("%d bytes: %.100q", len(long.Output), long.Output)
	}
	var calls int
	if err := w.pool.QueryRow(t.Context(),
		`SELECT count(*) FROM egress_requests WHERE call_id = 'toolu_1' AND 'CRM_TOKEN@1' = ANY(credentials)`).Scan(&calls); err != nil ||
		calls < 5 {
		t.Errorf("%d requests on record, %v", calls, err)
	}
	run.Close() // the answers are recorded beside the calls
	var open int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM egress_requests WHERE status IS NULL`).Scan(&open); err != nil || open > 0 {
		t.Errorf("%d requests have no status after the run, %v", open, err)
	}
	servers, err := w.store.List(t.Context(), w.workspace)
	if err != nil || servers[0].LastUsedAt == nil || servers[0].LastError != "" {
		t.Errorf("%+v, %v", servers, err)
	}
}

// TestTimeoutAndCancelReachTheServer checks that the server is told that nobody waits for a call.
func TestTimeoutAndCancelReachTheServer(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	w := newWorld(t, served(func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "find"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ question) (*mcp.CallToolResult, any, error) {
			begun <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return nil, nil, ctx.Err()
		})
	}))
	e := crm
	e.Timeout = time.Second
	w.add(t, e)
	tools := w.tools(t, w.run(t))
	if got := call(t, t.Context(), tools["crm__find"], `{"name":"x"}`); got.OK ||
		got.Output != "interrupted, outcome unknown: The tool server crm gave no result within 1 seconds." {
		t.Errorf("%+v", got)
	}
	wait.Receive(t, "the first call", begun)
	wait.Receive(t, "its end", ended)
	why := errors.New("the user canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	failed := make(chan error, 1)
	go func() {
		_, err := tools["crm__find"].Call(ctx, tool.Call{ID: "toolu_2", Input: []byte(`{"name":"x"}`)})
		failed <- err
	}()
	wait.Receive(t, "the second call", begun)
	cancel(why)
	if err := wait.Receive(t, "the result", failed); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	wait.Receive(t, "its end", ended)
}
