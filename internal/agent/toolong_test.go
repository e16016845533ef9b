package agent_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
)

// tooLong is the rejection of a request by the provider.
var tooLong = modeltest.Reply{Status: 400,
	Body: `{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window."}}`}

// fetches returns replies that each call the tool fetch.
func fetches(n int) (replies []modeltest.Reply) {
	for range n {
		replies = append(replies, modeltest.Reply{Calls: []modeltest.Call{{Tool: "fetch", Input: "{}"}}})
	}
	return replies
}

// scripted returns an agent on a scripted provider, which answers with these replies.
func scripted(t *testing.T, replies []modeltest.Reply) (*agent.Agent, *modeltest.Script) {
	t.Helper()
	script := &modeltest.Script{Replies: replies}
	srv := modeltest.OpenAI(script)
	t.Cleanup(srv.Close)
	m := openai.New(openai.Config{Model: "gpt-5-mini", BaseURL: srv.URL + "/v1"})
	return &agent.Agent{Model: m, Tools: []tool.Tool{fetch{9000}}, MaxTurns: 20, Log: slog.New(slog.DiscardHandler)}, script
}

// TestTooLongRequestIsShortened has a provider with a smaller window than the catalog says: the turn
// continues with masked results, and stays below the learned window.
func TestTooLongRequestIsShortened(t *testing.T) {
	t.Parallel()
	a, script := scripted(t, append(append(fetches(5), tooLong), append(fetches(5), modeltest.Reply{Text: []string{"Done."}})...))
	j := &journal{}
	all, err := finish(t, a, j, "read")
	if err != nil {
		t.Fatal(err)
	}
	if last, ok := all[len(all)-1].(event.Reply); !ok || last.Text != "Done." || last.Sent.Masked == nil || last.Sent.Window == 0 {
		t.Errorf("the turn ends with %+v", all[len(all)-1])
	}
	requests := script.Requests()
	rejected := len(requests[5].Body)
	for i, req := range requests[6:] {
		if len(req.Body) >= rejected || !strings.Contains(string(req.Body), "is masked") {
			t.Errorf("request %d has %d bytes after one with %d was rejected", i+6, len(req.Body), rejected)
		}
	}

	replies := 0
	for i, e := range j.log { // another process continues the turn after the shortened step
		if e.Kind != event.KindReply {
			continue
		}
		if replies++; replies == 8 {
			b, again := scripted(t, []modeltest.Reply{{Text: []string{"Done."}}})
			if _, err := finish(t, b, &journal{log: j.log[:i+3]}, ""); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(messagesOf(t, requests[9]), messagesOf(t, again.Requests()[0])); diff != "" {
				t.Errorf("the continued turn sends another request: %s", diff)
			}
		}
	}
}

// messagesOf returns the messages of a request.
func messagesOf(t *testing.T, req modeltest.Request) (body struct{ Messages []any }) {
	t.Helper()
	if err := json.Unmarshal(req.Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// TestTooLongMessageEndsTheTurn has a message that is too long by itself: it is not sent again.
func TestTooLongMessageEndsTheTurn(t *testing.T) {
	t.Parallel()
	a, script := scripted(t, []modeltest.Reply{tooLong})
	_, err := finish(t, a, &journal{}, "read")
	if f, ok := errors.AsType[*agent.Failure](err); !ok || !strings.Contains(f.Message, "start a new session.") ||
		len(script.Requests()) != 1 {
		t.Errorf("after %d requests the turn ends with %v", len(script.Requests()), err)
	}
}
