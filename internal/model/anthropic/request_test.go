package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/anthropic"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// sent returns the body and headers that a server receives for a request.
func sent(t *testing.T, req model.Request) (map[string]any, http.Header) {
	t.Helper()
	script := modeltest.Say("ok")
	srv := modeltest.Anthropic(script)
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
			{Role: model.User, Text: "Hello"},
			{Role: model.User, Text: "Read both, grüße 👍"},
			{Role: model.Assistant, Text: "Reading.", Calls: []event.ToolCall{
				{ID: "call_a", Tool: "wiki_read", Input: json.RawMessage(`{"path": "a.md", "n": 12345678901234567890}`)},
				{ID: "call_b", Tool: "clock", Input: nil},
			}},
			{Role: model.ToolRole, CallID: "call_a", Text: "# A"},
			{Role: model.ToolRole, CallID: "call_b", Text: "no clock here", Failed: true},
			{Role: model.User, Text: "Go on"},
			{Role: model.Assistant, Text: " \n", Calls: []event.ToolCall{{ID: "call_c", Tool: "clock", Input: json.RawMessage(`{}`)}}},
			{Role: model.ToolRole, CallID: "call_c", Text: ""},
			{Role: model.Assistant, Text: "It "},
			{Role: model.Assistant, Text: "is A."},
			{Role: model.User, Text: " "},
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
		"model": "claude-sonnet-4-5", "stream": true, "max_tokens": 500,
		"system": [{"type": "text", "text": "You are Parley. <b>&", "cache_control": {"type": "ephemeral"}}],
		"messages": [
			{"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "Read both, grüße 👍"}]},
			{"role": "assistant", "content": [{"type": "text", "text": "Reading."},
				{"type": "tool_use", "id": "call_a", "name": "wiki_read", "input": {"path": "a.md", "n": 12345678901234567890}},
				{"type": "tool_use", "id": "call_b", "name": "clock", "input": {}}]},
			{"role": "user", "content": [
				{"type": "tool_result", "tool_use_id": "call_a", "content": [{"type": "text", "text": "# A"}]},
				{"type": "tool_result", "tool_use_id": "call_b", "is_error": true, "content": [{"type": "text", "text": "no clock here"}]},
				{"type": "text", "text": "Go on"}]},
			{"role": "assistant", "content": [{"type": "tool_use", "id": "call_c", "name": "clock", "input": {}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_c", "cache_control": {"type": "ephemeral"}}]},
			{"role": "assistant", "content": [{"type": "text", "text": "It "}, {"type": "text", "text": "is A."}]},
			{"role": "user", "content": [{"type": "text", "text": "Thanks", "cache_control": {"type": "ephemeral"}}]}
		],
		"tools": [
			{"name": "wiki_read", "description": "Reads a page.", "input_schema":
				{"type": "object", "properties": {"n": {"type": "integer", "maximum": 12345678901234567890}}, "required": ["path"], "additionalProperties": false}},
			{"name": "clock", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral"}}
		]}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body differs (-want +got):\n%s", diff)
	}
	if k := header.Get("X-Api-Key"); k != modeltest.Key {
		t.Errorf("X-Api-Key %q", k)
	}
	if v := header.Get("Anthropic-Version"); v != "2023-06-01" {
		t.Errorf("Anthropic-Version %q", v)
	}
}

func TestRequestAlwaysBoundsTheReply(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]json.Number{
		"claude-sonnet-4-5": "32000", "claude-3-5-haiku-latest": "8192", "claude-3-haiku-20240307": "4096", "other": "8192",
	} {
		script := modeltest.Say("ok")
		srv := modeltest.Anthropic(script)
		t.Cleanup(srv.Close)
		m := anthropic.New(anthropic.Config{Model: name, BaseURL: srv.URL + "/", HTTPClient: srv.Client()})
		if _, err := modeltest.Read(m.Generate(t.Context(), model.Request{})); err != nil {
			t.Fatal(err)
		}
		if got := decode(t, string(script.Requests()[0].Body))["max_tokens"]; got != want {
			t.Errorf("%s: max_tokens %v, want %v", name, got, want)
		}
	}
}
