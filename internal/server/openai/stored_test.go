package openai_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
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
	if r := s.Get(t, get(ended, "")); r.Body["status"] != "completed" || !strings.Contains(r.Text, `"text":"1 2 3"`) || r.Body["id"] != ended.Body["id"] || r.Body["session_id"] != ended.Body["session_id"] {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if list := s.Stream(t, get(ended, "?stream=true")); !strings.HasSuffix(apitest.FrameTypes(t, list), "response.completed") {
		t.Errorf("%v", list)
	}
	if r := s.Get(t, get(create(`{"model":"demo",`+twoItems+`,"input":"@call clock {}"}`), "")); r.Body["status"] != "completed" || !strings.Contains(r.Text, `"function_call"`) {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	running := create(`{"model":"demo","background":true,"input":"@call gate {}"}`)
	if running.Body["status"] != "queued" {
		t.Errorf("%s", running.Text)
	}
	s.Gate.Await(t)
	if r := s.Get(t, get(running, "")); r.Body["status"] != "in_progress" {
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
		"another key": {Path: get(ended, "").Path, Key: other}, "no turn": {Path: apitest.ResponsesPath + "/resp_0197a0d2-0000-7000-8000-000000000001"}, "no id": {Path: apitest.ResponsesPath + "/x"},
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
		r := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","background":true,"conversation":"c","multitask_strategy":"enqueue","input":"` + input + `"}`})
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
