package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

func respond(base string, client *http.Client) model.Model {
	return openai.New(openai.Config{Model: "gpt-5-mini", APIKey: modeltest.Key, BaseURL: base + "/v1", HTTPClient: client, Responses: true})
}

func TestPromisesOfAModelInTheResponsesAPI(t *testing.T) {
	t.Parallel()
	modeltest.ResponsesSuite(respond).Run(t)
}

// TestResponsesRequest checks the whole body on the wire: the provider stores nothing, and returns
// its reasoning encrypted.
func TestResponsesRequest(t *testing.T) {
	t.Parallel()
	script := modeltest.Say("ok")
	srv := modeltest.Responses(script)
	t.Cleanup(srv.Close)
	half := 0.5
	reasoning := model.Reasoning{Provider: "openai/gpt-5-mini",
		Data: json.RawMessage(`{"calls":1,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"xyz"}}`)}
	_, err := modeltest.Read(respond(srv.URL, srv.Client()).Generate(t.Context(), model.Request{
		System: "You are Parley. <b>&", CacheKey: "session-1", Effort: "high", MaxTokens: 500, MustCall: true, OneCall: true,
		Options: model.Options{Temperature: &half},
		Messages: []model.Message{
			{Role: model.User, Text: "Read both, grüße 👍"},
			{Role: model.Assistant, Text: "Reading.", Reasoning: []model.Reasoning{reasoning}, Calls: []event.ToolCall{
				{ID: "call_a", Tool: "wiki_read", Input: json.RawMessage(`{"n": 12345678901234567890}`)}, {ID: "call_b", Tool: "clock"},
			}},
			{Role: model.ToolRole, CallID: "call_a", Text: "# A"},
			{Role: model.ToolRole, CallID: "call_b", Text: "no clock here", Failed: true},
		},
		Tools: []model.Tool{{Name: "clock", Description: "Tells the time."}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, `{
		"model": "gpt-5-mini", "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "session-1",
		"max_output_tokens": 500, "reasoning": {"effort": "high"}, "instructions": "You are Parley. <b>&",
		"tool_choice": "required", "parallel_tool_calls": false,
		"tools": [{"type": "function", "name": "clock", "description": "Tells the time.", "parameters": {"type": "object", "properties": {}}, "strict": false}],
		"input": [
			{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read both, grüße 👍"}]},
			{"type": "message", "role": "assistant", "content": "Reading."},
			{"type": "function_call", "call_id": "call_a", "name": "wiki_read", "arguments": "{\"n\": 12345678901234567890}"},
			{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
			{"type": "function_call", "call_id": "call_b", "name": "clock", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "call_a", "output": "# A"},
			{"type": "function_call_output", "call_id": "call_b", "output": "Error: no clock here"}
		]}`)
	if diff := cmp.Diff(want, decode(t, string(script.Requests()[0].Body))); diff != "" {
		t.Errorf("body differs (-want +got):\n%s", diff)
	}
}

// TestResponsesAskNothingThatAModelRejects checks a model without reasoning.
func TestResponsesAskNothingThatAModelRejects(t *testing.T) {
	t.Parallel()
	script := modeltest.Say("ok")
	srv := modeltest.Responses(script)
	t.Cleanup(srv.Close)
	half := 0.5
	for i, name := range []string{"gpt-4o", "gpt-5-chat-latest"} {
		m := openai.New(openai.Config{Model: name, BaseURL: srv.URL + "/v1", Responses: true})
		if _, err := modeltest.Read(m.Generate(t.Context(), model.Request{Options: model.Options{Temperature: &half}})); err != nil {
			t.Fatal(err)
		}
		got := decode(t, string(script.Requests()[i].Body))
		if got["include"] != nil || got["reasoning"] != nil || got["temperature"] != json.Number("0.5") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestChatReplacesResponsesWhereTheyAreMissing checks that a server which lacks the Responses API is
// asked for it once, and that options which the API lacks are kept.
func TestChatReplacesResponsesWhereTheyAreMissing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		chat := modeltest.OpenAI(modeltest.Say("ok"))
		t.Cleanup(chat.Close)
		var paths []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.URL.Path)
			if strings.HasSuffix(r.URL.Path, "/responses") {
				w.WriteHeader(status)
				return
			}
			chat.Config.Handler.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		m := respond(srv.URL, srv.Client())
		for range 2 {
			if got, err := modeltest.Read(m.Generate(t.Context(), model.Request{})); err != nil || got.Text != "ok" {
				t.Fatalf("%d: %+v, %v", status, got, err)
			}
		}
		if want := "[/v1/responses /v1/chat/completions /v1/chat/completions]"; fmt.Sprint(paths) != want {
			t.Errorf("%d: requests to %v", status, paths)
		}
	}
	chat := modeltest.Say("ok")
	srv := modeltest.OpenAI(chat)
	t.Cleanup(srv.Close)
	for _, req := range []model.Request{{Options: model.Options{Stop: []string{"END"}}}, {Options: model.Options{Seed: new(int64)}},
		{MaxTokens: 7}} {
		if _, err := modeltest.Read(respond(srv.URL, srv.Client()).Generate(t.Context(), req)); err != nil {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

// TestResponsesEnd checks the reasons for which a response is incomplete.
func TestResponsesEnd(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]model.Stop{"": model.StopEnd, "max_output_tokens": model.StopLength,
		"content_filter": model.StopRefused} {
		srv := modeltest.Responses(&modeltest.Script{Replies: []modeltest.Reply{{Text: []string{"Hi"}, Stop: reason}}})
		t.Cleanup(srv.Close)
		if got, err := modeltest.Read(respond(srv.URL, srv.Client()).Generate(t.Context(), model.Request{})); err != nil || got.Stop != want {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
}
