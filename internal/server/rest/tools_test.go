package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
)

// weather is a caller's tool.
const weather = `"tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{"type":"object",` +
	`"properties":{"city":{"type":"string"}},"required":["city"]}}]`

// required is the data of a tool_required frame.
type required struct {
	Kind       string
	ApprovalID string `json:"approval_id"`
	Calls      []struct {
		ToolUseID string `json:"tool_use_id"`
		Tool      string
		Input     json.RawMessage
	}
	ReplyURL string `json:"reply_url"`
}

// needs reads to the next calls of the caller's tools.
func (s *stream) needs() required {
	s.t.Helper()
	frames := s.until("tool_required")
	var q required
	if err := json.Unmarshal([]byte(frames[len(frames)-1].data), &q); err != nil || len(q.Calls) == 0 {
		s.t.Fatalf("%s: %v", frames[len(frames)-1].data, err)
	}
	return q
}

// results is the body of a request with a result of a call.
func results(id, output string) string {
	return fmt.Sprintf(`{"results":[{"tool_use_id":%q,"output":%s}]}`, id, output)
}

// TestCallersTools runs a caller's tool: the stream asks for its result, another connection posts
// it, and the stream continues.
func TestCallersTools(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, `Use get_weather with {"city":"Paris"}`, weather)
	id := sessionOf(t, st.until("open")[0])
	q := st.needs()
	if q.Kind != "tool" || q.Calls[0].Tool != "get_weather" || string(q.Calls[0].Input) != `{"city":"Paris"}` ||
		q.ReplyURL != "/api/v1/workspaces/"+s.Workspace.ID.String()+"/sessions/"+id+"/tool-results" {
		t.Errorf("%+v", q)
	}
	if r := s.get(t, call{path: "approvals"}); strings.Contains(r.text, q.ApprovalID) {
		t.Errorf("the inbox has the wait: %s", r.text)
	}
	if r := s.get(t, call{path: "approvals/" + q.ApprovalID}); r.status != 200 || !strings.Contains(r.text, `"kind":"tool"`) ||
		!strings.Contains(r.text, q.Calls[0].ToolUseID) {
		t.Errorf("the wait is %d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: "sessions/" + id}); !strings.Contains(r.text, `"pending":{"kind":"tool","approval_id":"`+q.ApprovalID) {
		t.Errorf("the session is %s", r.text)
	}
	if r := s.get(t, call{method: "POST", path: fmt.Sprintf("/api/workspaces/%s/approvals/%s/decide", s.Workspace.ID, q.ApprovalID),
		body: allow}); r.Error.Code != "APPROVAL_NOT_FOUND" {
		t.Errorf("a decision about it is %d %s", r.status, r.text)
	}

	call0 := q.Calls[0].ToolUseID
	post := call{method: "POST", path: q.ReplyURL, key: s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead),
		body: results(call0, `{"celsius": 21}`), header: []string{"Idempotency-Key", "one"}}
	for _, c := range []struct {
		name, code string
		call       call
	}{
		{"without the scope", "INSUFFICIENT_SCOPE", call{key: s.Issue(t, s.Workspace, apikey.SessionsRead), path: q.ReplyURL, body: post.body}},
		{"another key", "INSUFFICIENT_SCOPE", call{key: s.Issue(t, s.Workspace, apikey.Chat), path: q.ReplyURL, body: post.body}},
		{"an invented id", "TOOL_CALL_NOT_FOUND", call{path: q.ReplyURL, body: results("call_1", `1`)}},
		{"another session", "SESSION_NOT_FOUND", call{path: strings.Replace(q.ReplyURL, id, q.ApprovalID, 1), body: post.body}},
		{"a server's call", "TOOL_CALL_NOT_FOUND", call{path: "tool-calls/" + call0 + "/result", body: `{"output":1}`}},
		{"output and error", "INVALID_REQUEST", call{path: q.ReplyURL, body: `{"results":[{"tool_use_id":"x","output":1,"error":"y"}]}`}},
		{"neither", "INVALID_REQUEST", call{path: q.ReplyURL, body: `{"results":[{"tool_use_id":"x"}]}`}},
		{"twice", "INVALID_REQUEST", call{path: q.ReplyURL, body: `{"results":[{"tool_use_id":"x","output":1},{"tool_use_id":"x","output":1}]}`}},
		{"none", "INVALID_REQUEST", call{path: q.ReplyURL, body: `{"results":[]}`}},
		{"too large", "INVALID_REQUEST", call{path: q.ReplyURL, body: results(call0, `"`+strings.Repeat("x", request.MaxToolOutput+1)+`"`)}},
	} {
		c.call.method = "POST"
		if r := s.get(t, c.call); r.Error.Code != c.code {
			t.Errorf("%s: %d %s", c.name, r.status, r.text)
		}
	}
	first := s.get(t, post)
	if first.status != 200 || !strings.Contains(first.text, `"accepted":["`+call0+`"],"pending":[]`) {
		t.Fatalf("%d %s", first.status, first.text)
	}
	rest := st.rest()
	if got := names(rest); got != "tool_result text usage done" || !strings.Contains(rest[0].data, `"ok":true,"output":"{\"celsius\":21}"`) {
		t.Errorf("the stream continues with %s: %s", got, rest[0].data)
	}
	if r := s.get(t, post); r.text != first.text || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", r.status, r.text)
	}
	post.header = nil
	if r := s.get(t, post); r.status != 200 || !strings.Contains(r.text, `"accepted":[]`) {
		t.Errorf("the same result without the key: %d %s", r.status, r.text)
	}
	post.body = results(call0, `1`)
	if r := s.get(t, post); r.Error.Code != "TOOL_CALL_ANSWERED" {
		t.Errorf("another result: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: "sessions/" + id + "/messages"}); !strings.Contains(r.text, `"tool":"get_weather"`) ||
		!strings.Contains(r.text, `"ok":true`) {
		t.Errorf("the history is %s", r.text)
	}
}

// TestBlockingCallReturnsWithTheCalls: a blocking call returns the calls of the caller's tools, and
// the turn waits.
func TestBlockingCallReturnsWithTheCalls(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.get(t, call{method: "POST", path: "messages", body: body(t, `Use get_weather with {"city":"Paris"}`, weather, `"stream":false`)})
	var answer struct {
		Success   bool
		Error     string
		SessionID string   `json:"session_id"`
		Required  required `json:"tool_required"`
	}
	if err := json.Unmarshal([]byte(r.text), &answer); err != nil || answer.Success || answer.Error != "tool_required" ||
		len(answer.Required.Calls) != 1 {
		t.Fatalf("%s: %v", r.text, err)
	}
	failed := fmt.Sprintf(`{"results":[{"tool_use_id":%q,"error":"The city is unknown."}]}`, answer.Required.Calls[0].ToolUseID)
	if r := s.get(t, call{method: "POST", path: answer.Required.ReplyURL, body: failed}); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	st := s.open(t, call{path: "sessions/" + answer.SessionID + "/events?replay=all"})
	if f := st.until("tool_result"); !strings.Contains(f[len(f)-1].data, `"ok":false,"output":"The city is unknown."`) {
		t.Errorf("the result is %s", f[len(f)-1].data)
	}
}

// TestInvalidToolsAreExplained: the definitions of a message are checked before its turn starts.
func TestInvalidToolsAreExplained(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for tools, want := range map[string]string{
		`{}`:                               "/tools type",
		`[{"description":"x"}]`:            "/tools/0/name required",
		`[{"name":"1x"}]`:                  "/tools/0/name format",
		`[{"name":"server__tool"}]`:        "/tools/0/name format",
		`[{"name":"bash"}]`:                "/tools/0/name unique",
		`[{"name":"final_answer"}]`:        "/tools/0/name unique",
		`[{"name":"x"},{"name":"x"}]`:      "/tools/1/name unique",
		`[{"name":"x","parameters":{}}]`:   "/tools/0/parameters unknown",
		`[{"name":"x","input_schema":{}}]`: "/tools/0/input_schema/type schema",
		`[{"name":"x","input_schema":{"type":"object","properties":{"a":{"$ref":"https://example.com/"}}}}]`: "/tools/0/input_schema/properties/a/$ref schema",
		`[` + strings.Repeat(`{"name":"x"},`, request.MaxTools) + `{"name":"x"}]`:                            "/tools max_items",
		`[{"name":"x","description":"` + strings.Repeat("x", request.MaxToolDefinitions) + `"}]`:             "/tools max_length",
	} {
		r := s.get(t, call{method: "POST", path: "messages", body: body(t, "hello", `"tools":`+tools)})
		if r.status != 400 || len(r.Error.Violations) == 0 || r.Error.Violations[0].Param+" "+r.Error.Violations[0].Rule != want {
			t.Errorf("%.80s: %d %+v, want %s", tools, r.status, r.Error.Violations, want)
		}
	}
}
