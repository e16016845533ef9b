package openai_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestResponses checks that a response is a turn, and that a request with previous_response_id
// continues in its session.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	first := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":"count to 3","instructions":"be brief"}`})
	if first.Status != 200 || first.Body["status"] != "completed" || !strings.Contains(first.Text, `"text":"1 2 3"`) ||
		first.Header.Get("X-Parley-Ignored") != "" {
		t.Fatalf("%d %s %v", first.Status, first.Text, first.Header)
	}
	id := first.Body["id"].(string)
	list := s.Stream(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","stream":true,"previous_response_id":"` + id +
		`","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"count to 2"}]}]}`})
	if got := apitest.FrameTypes(t,
		list); got != "response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta "+
		"response.output_text.done response.content_part.done response.output_item.done response.completed" {
		t.Errorf("%s", got)
	}
	if last := list[len(list)-1]; !strings.Contains(last, first.Body["session_id"].(string)) ||
		!strings.Contains(last, `"previous_response_id":"`+id+`"`) {
		t.Errorf("%s", last)
	}
	inASchema := `{"model":"demo","input":"@structured {\"n\":1}","text":{"format":{"type":"json_schema","name":"n",` +
		`"schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`
	if r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: inASchema}); !strings.Contains(r.Text, `"text":"{\"n\":1}"`) {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if list := s.Stream(t, apitest.Call{Path: apitest.ResponsesPath,
		Body: `{"model":"demo","stream":true,"input":"@error model_error"}`}); !strings.HasSuffix(apitest.FrameTypes(t, list),
		" response.failed") {
		t.Errorf("%v", list)
	}
	for name, c := range map[string]struct{ body, param, message string }{
		"no input": {`{"model":"demo"}`, "input", "input must be a text, or an array of messages"},
		"another input": {`{"model":"demo","input":7,"previous_response_id":7}`, "previous_response_id",
			"previous_response_id must be a string. input must be a text"},
		"a forced call": {`{"model":"demo","input":"x","tool_choice":{"type":"function","name":"f"}}`, "tool_choice",
			"tool_choice requires a call of a function that tools does not define."},
		"another format": {`{"model":"demo","input":"x","text":{"format":{"type":"grammar"}}}`, "text/format/type", "text/format/type must be"},
		"a long input":   {`{"model":"demo","input":"` + strings.Repeat("x", 200_001) + `"}`, "input", "input has more than"},
		"a long part": {`{"model":"demo","input":[{"role":"user","content":"` + strings.Repeat("x", 200_001) + `"}]}`, "input/0/content",
			"input/0/content has"},
		"a tool's": {
			`{"model":"demo","input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c","output":"x"}]}`, "input",
			"No call \"c\" waits for a result in this chat."},
		"no schema": {`{"model":"demo","input":"x","text":{"format":{"type":"json_schema"}}}`, "text/format/schema",
			"text/format/schema is missing."},
		"a bad schema": {`{"model":"demo","input":"x","text":{"format":{"type":"json_schema","schema":{"type":"x"}}}}`,
			"text/format/schema", "text/format/schema at"},
		"two threads":    {`{"model":"demo","input":"x","previous_response_id":"` + id + `","conversation":"c"}`, "conversation", "Send either"},
		"a conversation": {`{"model":"demo","input":"x","conversation":{"id":7}}`, "conversation", "conversation must be a string."},
	} {
		r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: c.body})
		e, _ := r.Body["error"].(map[string]any)
		if text, _ := e["message"].(string); r.Status != 400 || e["param"] != c.param || !strings.HasPrefix(text, c.message) {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	if r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath,
		Body: `{"model":"demo","input":"count to 2","store":false,"text":{"verbosity":"low"},"conversation":"c",` +
			`"metadata":{"plan":"gold"}}`}); r.Header.Get("X-Parley-Ignored") != "store, text/verbosity" ||
		!strings.Contains(r.Text, `"conversation":{"id":"c"}`) || !strings.Contains(r.Text, `"metadata":{"plan":"gold"}`) {
		t.Errorf("%s %v", r.Text, r.Header)
	}
	other, err := s.Workspaces.Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	foreign := apitest.Call{Path: apitest.ResponsesPath, Key: s.Issue(t, other, apikey.All...),
		Body: `{"model":"another","input":"x","previous_response_id":"` + id + `"}`}
	nobodys := foreign
	nobodys.Body = strings.Replace(foreign.Body, id, "resp_0197a0d2-0000-7000-8000-000000000001", 1)
	for _, c := range []apitest.Call{foreign, nobodys} {
		if r := s.Get(t, c); r.Status != 404 || r.Code != "SESSION_NOT_FOUND" {
			t.Errorf("%s: %d %s", c.Body, r.Status, r.Text)
		}
	}
}
