package e2e_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// TestProviderByOneVariable starts the service with only the address of a server that implements a
// provider's protocol. The reply arrives in pieces that are cut anywhere, breaks off once, and uses
// a tool.
func TestProviderByOneVariable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variable, path, name string
		cut                  int // frames of the first reply; fewer than it has
		serve                func(*modeltest.Script) *httptest.Server
	}{
		{"OPENAI_BASE_URL", "/v1", "openai/", 3, modeltest.OpenAI},
		{"ANTHROPIC_BASE_URL", "", "anthropic/", 5, modeltest.Anthropic},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Parallel()
			script := &modeltest.Script{Replies: []modeltest.Reply{
				{Text: []string{"One ", "mo", "ment. "}, Bytes: 7, Cut: c.cut},
				{Text: []string{"(going on) "}, Calls: []modeltest.Call{{ID: "c1", Tool: "grep", Input: `{"pattern":"x"}`}}, Bytes: 11},
				{Text: []string{"Ready: ", "grüße ", "👩‍🚀"}, Bytes: 1, Usage: &model.Usage{InputTokens: 30, OutputTokens: 4}},
			}}
			provider := c.serve(script)
			t.Cleanup(func() {
				provider.CloseClientConnections()
				provider.Close()
			})
			w := newWorld(t)
			s := w.serve(t, []string{c.variable + "=" + provider.URL + c.path})
			session, _ := w.start(t, s, "look x up")
			frames, err := w.follow(t.Context(), session, "", nil, s)
			if err != nil {
				t.Fatal(err)
			}
			// A reset may lose bytes in transit, so any beginning of the first reply is correct;
			// none of it may be repeated.
			begun, whole := strings.CutSuffix(text(frames), "(going on) \n\nReady: grüße 👩‍🚀")
			if !whole || !strings.HasPrefix("One moment. ", begun) {
				t.Errorf("text %q", text(frames))
			}
			tools, usage := 0, ""
			for _, f := range frames {
				switch f.Event {
				case "tool_result":
					tools++
				case "usage":
					usage = f.Data
				case "error":
					t.Errorf("error frame %s", f.Data)
				}
			}
			if tools != 1 || !strings.Contains(usage, `"model":"`+c.name) {
				t.Errorf("%d tool results, usage %s", tools, usage)
			}
			if n := len(script.Requests()); n != 3 {
				t.Errorf("the provider was called %d times", n)
			}
		})
	}
}
