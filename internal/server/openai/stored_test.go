package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestStoredResponses retrieves responses that have ended, wait, run in the background or were
// canceled, and checks that other keys and workspaces have none of them.
func TestStoredResponses(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	create := func(body string) apitest.Reply {
		t.Helper()
		r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: body})
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Text)
		}
		return r
	}
	get := func(r apitest.Reply, query string) apitest.Call {
		return apitest.Call{Path: apitest.ResponsesPath + "/" + r.Body["id"].(string) + query}
	}
	ended := create(`{"model":"demo","input":"count to 3"}`)
	if r := s.Get(t, get(ended, "")); r.Body["status"] != "completed" || !strings.Contains(r.Text, `"text":"1 2 3"`) ||
		r.Body["id"] != ended.Body["id"] || r.Body["session_id"] != ended.Body["session_id"] {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if list := s.Stream(t, get(ended, "?stream=true")); !strings.HasSuffix(apitest.FrameTypes(t, list), "response.completed") {
		t.Errorf("%v", list)
	}
	if r := s.Get(t, get(create(`{"model":"demo",`+twoItems+`,"input":"@call clock {}"}`), "")); r.Body["status"] != "completed" ||
		!strings.Contains(r.Text, `"function_call"`) {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	running := create(`{"model":"demo","background":true,"input":"@call gate {}"}`)
	if running.Body["status"] != "queued" {
		t.Errorf("%s", running.Text)
	}
	s.Gate.Await(t)
	if r := s.Get(t, get(running, "")); r.Body["status"] != "in_progress" || len(r.Body["output"].([]any)) != 0 {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	cancel := get(running, "/cancel")
	cancel.Method = "POST"
	for range 2 {
		if r := s.Get(t, cancel); r.Body["status"] != "cancelled" {
			t.Errorf("%d %s", r.Status, r.Text)
		}
	}
	other := s.Issue(t, s.Workspace, apikey.Chat)
	for name, c := range map[string]apitest.Call{
		"another key": {Path: get(ended, "").Path, Key: other},
		"no turn":     {Path: apitest.ResponsesPath + "/resp_0197a0d2-0000-7000-8000-000000000001"},
		"no id":       {Path: apitest.ResponsesPath + "/x"},
	} {
		if r := s.Get(t, c); r.Status != 404 {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
}

// TestCancelEndsOneResponse: a cancellation ends the turn of its response, queued or running, and
// the other turns of the session continue.
func TestCancelEndsOneResponse(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	send := func(input string) string {
		t.Helper()
		r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath,
			Body: `{"model":"demo","background":true,"conversation":"c","multitask_strategy":"enqueue","input":"` + input + `"}`})
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Text)
		}
		return apitest.ResponsesPath + "/" + r.Body["id"].(string)
	}
	check := func(c apitest.Call, want string) {
		t.Helper()
		if r := s.Get(t, c); r.Body["status"] != want {
			t.Errorf("%s is %d %s, want %s", c.Path, r.Status, r.Text, want)
		}
	}
	running := send("@call gate {}")
	s.Gate.Await(t)
	behind, last := send("count to 2"), send("count to 3")
	check(apitest.Call{Method: "POST", Path: behind + "/cancel"}, "cancelled")
	check(apitest.Call{Path: running}, "in_progress")
	check(apitest.Call{Path: last}, "queued")
	check(apitest.Call{Method: "POST", Path: running + "/cancel"}, "cancelled")
	if list := s.Stream(t, apitest.Call{Path: last + "?stream=true"}); !strings.HasSuffix(apitest.FrameTypes(t, list), "response.completed") {
		t.Errorf("%v", list)
	}
}

// items returns the output items of a response as JSON.
func items(t *testing.T, response any) string {
	t.Helper()
	object, _ := response.(map[string]any)
	text, err := json.Marshal(object["output"])
	if err != nil || object["output"] == nil {
		t.Fatalf("%v: %v", response, err)
	}
	return string(text)
}

// streamed returns the response of the last event of a stream, and the items that are done or, of an
// open stream, added.
func streamed(t *testing.T, list []string) (response map[string]any, done []any) {
	t.Helper()
	for _, data := range list {
		var e struct {
			Type     string
			Response map[string]any
			Item     any
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "response.output_item.done" {
			done = append(done, e.Item)
		}
		if e.Response != nil {
			response = e.Response
		}
	}
	return response, done
}

// TestRetrievedItemsAreThoseOfTheStream checks that a response that is read later has the items that
// its stream had: completed, failed, with calls that have results by then, and the rest after them.
func TestRetrievedItemsAreThoseOfTheStream(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	check := func(name, body string) (id string, done []any) {
		t.Helper()
		response, done := streamed(t, s.Stream(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","stream":true,` + body + `}`}))
		id, _ = response["id"].(string)
		r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath + "/" + id})
		want := items(t, response)
		if sent, _ := json.Marshal(done); string(sent) != want {
			t.Errorf("%s: the stream has sent %s, and its end has %s", name, sent, want)
		}
		if got := items(t, r.Body); got != want || r.Body["status"] != response["status"] || r.Body["id"] != id {
			t.Errorf("%s: retrieved %s, want %s: %s", name, got, want, r.Text)
		}
		return id, done
	}
	check("two steps", `"input":"@say Let me see.\n@call touch {}\n@say It is so."`)
	check("a failure", `"input":"@say Half.\n@error model_error"`)
	check("a refusal", `"input":"@say Half.\n@refuse"`)
	check("a schema", `"input":"@structured {\"n\":1}","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}`)
	called, calls := check("calls", twoItems+`,"input":`+apitest.Quote(mixedScript))
	results := ""
	for _, c := range calls[1:] {
		results += fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"22 C"},`, c.(map[string]any)["call_id"])
	}
	rest := twoItems + `,"previous_response_id":"` + called + `","input":[` + strings.TrimSuffix(results, ",") + `]`
	first, said := check("results", rest)
	if again, repeated := check("results sent again", rest); again == first || len(repeated) != 1 || len(said) != 1 {
		t.Errorf("%s: %v and %s: %v", first, said, again, repeated)
	}
	made, _ := json.Marshal(calls)
	if r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath + "/" + called}); items(t, r.Body) != string(made) {
		t.Errorf("after the results: %s", r.Text)
	}
}

// TestRetrieveHidesNoText retrieves a response in the middle of its text, and after it was canceled or
// the events of its turn are gone.
func TestRetrieveHidesNoText(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath,
		Body: `{"model":"demo","background":true,"input":"@say Let me see.\n@call gate {}"}`})
	path := apitest.ResponsesPath + "/" + r.Body["id"].(string)
	s.Gate.Await(t)
	check := func(c apitest.Call, status, item string) {
		t.Helper()
		r := s.Get(t, c)
		if r.Body["status"] != status || !strings.Contains(items(t, r.Body), `"status":"`+item+`"`) ||
			!strings.Contains(r.Text, `"text":"Let me see."`) {
			t.Errorf("%d %s, want %s", r.Status, r.Text, status)
		}
	}
	check(apitest.Call{Path: path}, "in_progress", "in_progress")
	check(apitest.Call{Method: "POST", Path: path + "/cancel"}, "cancelled", "incomplete")
	check(apitest.Call{Path: path}, "cancelled", "incomplete")
	dbtest.Tamper(t, s.Pool, "DELETE FROM events")
	check(apitest.Call{Path: path}, "cancelled", "incomplete")
	if list := s.Stream(t, apitest.Call{Path: path + "?stream=true"}); !strings.HasSuffix(apitest.FrameTypes(t, list), "response.failed") {
		t.Errorf("%v", list)
	}
}

// TestDeletedResponses checks that no response of a turn is known after one was deleted, and that the
// session keeps the turn.
func TestDeletedResponses(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":"count to 3"}`})
	id := r.Body["id"].(string)
	path := apitest.ResponsesPath + "/" + id
	if r := s.Get(t, apitest.Call{Method: "DELETE", Path: path, Key: s.Issue(t, s.Workspace, apikey.Chat)}); r.Status != 404 {
		t.Errorf("another key: %d %s", r.Status, r.Text)
	}
	if r := s.Get(t, apitest.Call{Method: "DELETE", Path: path}); r.Status != 200 || r.Body["id"] != id || r.Body["object"] != "response" ||
		r.Body["deleted"] != true {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	for name, c := range map[string]apitest.Call{
		"retrieve": {Path: path}, "stream": {Path: path + "?stream=true"}, "cancel": {Method: "POST", Path: path + "/cancel"},
		"delete":                       {Method: "DELETE", Path: path},
		"another response of the turn": {Path: path + "_0197a0d2-0000-7000-8000-000000000001"},
		"the next": {Path: apitest.ResponsesPath,
			Body: `{"model":"demo","input":"count to 2","previous_response_id":"` + id + `"}`},
	} {
		if r := s.Get(t, c); r.Status != 404 || r.Code != "SESSION_NOT_FOUND" {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	var content string
	if err := s.Pool.QueryRow(t.Context(), "SELECT content FROM messages WHERE role = 'assistant'").Scan(&content); err != nil ||
		content != "1 2 3" {
		t.Errorf("the session has %q: %v", content, err)
	}
}
