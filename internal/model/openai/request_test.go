package openai_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// sent returns the body and headers that a server receives for a request.
func sent(t *testing.T, req model.Request) (map[string]any, http.Header) {
	t.Helper()
	script := modeltest.Say("ok")
	srv := modeltest.OpenAI(script)
	t.Cleanup(srv.Close)
	if _, err := modeltest.Read(speak(srv.URL, srv.Client()).Generate(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	got := script.Requests()[0]
	return decode(t, string(got.Body)), got.Header
}

func decode(t *testing.T, data string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(data))
	dec.UseNumber() // numbers must arrive digit for digit
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestRequestCarriesTheWholeConversation(t *testing.T) {
	t.Parallel()
	got, header := sent(t, model.Request{
		System: "You are Parley. <b>&",
		Messages: []model.Message{
			{Role: model.User, Text: "Read both, grüße 👍"},
			{Role: model.Assistant, Text: "Reading.", Calls: []event.ToolCall{
				{ID: "call_a", Tool: "wiki_read", Input: json.RawMessage(`{"path": "a.md", "n": 12345678901234567890}`)},
				{ID: "call_b", Tool: "clock", Input: nil},
			}},
			{Role: model.ToolRole, CallID: "call_a", Text: "# A"},
			{Role: model.ToolRole, CallID: "call_b", Text: "no clock here", Failed: true},
			{Role: model.Assistant, Calls: []event.ToolCall{{ID: "call_c", Tool: "clock", Input: json.RawMessage(`{}`)}}},
			{Role: model.ToolRole, CallID: "call_c", Text: ""},
			{Role: model.Assistant, Text: "It is A."},
			{Role: model.User, Text: "Thanks"},
		},
		Tools: []model.Tool{
			{Name: "wiki_read", Description: "Reads a page.",
				Schema: json.RawMessage(
					`{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567890}},"required":["path"],` +
						`"additionalProperties":false}`)},
			{Name: "clock"},
		},
		MaxTokens: 500,
	})
	want := decode(t, `{
		"model": "gpt-5-mini", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 500,
		"messages": [
			{"role": "system", "content": "You are Parley. <b>&"},
			{"role": "user", "content": "Read both, grüße 👍"},
			{"role": "assistant", "content": "Reading.", "tool_calls": [
				{"id": "call_a", "type": "function", "function": {"name": "wiki_read", "arguments": "{\"path\": \"a.md\", \"n\": 12345678901234567890}"}},
				{"id": "call_b", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "call_a", "content": "# A"},
			{"role": "tool", "tool_call_id": "call_b", "content": "Error: no clock here"},
			{"role": "assistant", "tool_calls": [
				{"id": "call_c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "call_c", "content": ""},
			{"role": "assistant", "content": "It is A."},
			{"role": "user", "content": "Thanks"}
		],
		"tools": [
			{"type": "function", "function": {"name": "wiki_read", "description": "Reads a page.", "parameters":
				{"type": "object", "properties": {"n": {"type": "integer", "maximum": 12345678901234567890}}, "required": ["path"], "additionalProperties": false}}},
			{"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}
		]}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body differs (-want +got):\n%s", diff)
	}
	if a := header.Get("Authorization"); a != "Bearer "+modeltest.Key {
		t.Errorf("Authorization %q", a)
	}
}

func TestRequestContinuesAnInterruptedReply(t *testing.T) {
	t.Parallel()
	history := make([]model.Message, 1, 8) // spare capacity: the caller's slice must not be changed
	history[0] = model.Message{Role: model.User, Text: "Tell me"}
	got, _ := sent(t, model.Request{Messages: history, Partial: "Once upon "})
	want := []any{
		map[string]any{"role": "user", "content": "Tell me"},
		map[string]any{"role": "assistant", "content": "Once upon "},
		map[string]any{"role": "user", "content": provider.Continue},
	}
	if diff := cmp.Diff(want, got["messages"]); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
	if history[:2][1].Text != "" {
		t.Error("the caller's messages were changed")
	}
}

func TestRequestLeavesOutWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	got, _ := sent(t, model.Request{Messages: []model.Message{{Role: model.User, Text: "Hi"}}})
	for _, name := range []string{"tools", "max_tokens", "max_completion_tokens", "tool_choice"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s = %v", name, v)
		}
	}
}

func TestRequestMendsNamesThatProvidersRefuse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	got, _ := sent(t, model.Request{Messages: []model.Message{
		{Role: model.Assistant, Calls: []event.ToolCall{{ID: long, Tool: "files.read file/ü"}, {ID: "", Tool: ""}}},
		{Role: model.ToolRole, CallID: long},
		{Role: model.ToolRole, CallID: ""},
	}})
	messages := got["messages"].([]any)
	calls := messages[0].(map[string]any)["tool_calls"].([]any)
	for i, name := range []string{"files_read_file__", "unknown"} {
		call := calls[i].(map[string]any)
		id := call["id"].(string)
		if id == "" || len(id) > 40 || id != messages[i+1].(map[string]any)["tool_call_id"] {
			t.Errorf("call %d has the id %q, its result %v", i, id, messages[i+1])
		}
		if got := call["function"].(map[string]any)["name"]; got != name {
			t.Errorf("call %d has the name %q, want %q", i, got, name)
		}
	}
}

// OpenAI's own models use another name for the limit.
func TestRequestToOpenAIItselfBoundsTheReplyInItsWords(t *testing.T) {
	t.Parallel()
	got, header := sentToOpenAI(t, model.Request{MaxTokens: 7})
	if got["max_completion_tokens"] != json.Number("7") || got["max_tokens"] != nil {
		t.Errorf("max_completion_tokens %v, max_tokens %v", got["max_completion_tokens"], got["max_tokens"])
	}
	if a := header.Get("Authorization"); a != "Bearer k" {
		t.Errorf("Authorization %q", a)
	}
}

// sentToOpenAI returns the request that api.openai.com would receive. The transport redirects it to
// a local server.
func sentToOpenAI(t *testing.T, req model.Request) (map[string]any, http.Header) {
	t.Helper()
	script := modeltest.Say("ok")
	srv := modeltest.OpenAI(script)
	t.Cleanup(srv.Close)
	local, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "api.openai.com" || r.URL.Scheme != "https" {
			t.Errorf("sent to %s", r.URL)
		}
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = local.Scheme, local.Host
		return srv.Client().Transport.RoundTrip(r)
	})}
	m := openai.New(openai.Config{Model: "gpt-5-mini", APIKey: "k\n", HTTPClient: client})
	if _, err := modeltest.Read(m.Generate(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	got := script.Requests()[0]
	return decode(t, string(got.Body)), got.Header
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
