package a2a_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
)

// plain sends a request of HTTP+JSON.
func (c *caller) plain(method, path, body string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.URL+a2a.PlainPath+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	return res
}

// plainJSON returns the body of a response of HTTP+JSON.
func (c *caller) plainJSON(method, path, body string) (int, string) {
	c.t.Helper()
	res := c.plain(method, path, body)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

// plainUpdates reads a stream of HTTP+JSON to its end.
func (c *caller) plainUpdates(res *http.Response) (list []string, last string) {
	c.t.Helper()
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%d %s", res.StatusCode, text)
	}
	reader := sse.NewReader(res.Body)
	for {
		f, err := reader.Next()
		if err != nil {
			return list, reader.LastEventID()
		}
		list = append(list, string(f.Data))
	}
}

// TestPlainTransport: HTTP+JSON has the methods of JSON-RPC with the same results, without its
// envelope.
func TestPlainTransport(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.speaks(t, "1.0")
	send := func(id, said, on string) string {
		return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]%s}}`, id, said, on)
	}
	status, text := c.plainJSON("POST", "/message:send", send("m-1", "@say Hello, you.", ""))
	var sent struct{ Task task }
	if err := json.Unmarshal([]byte(text), &sent); err != nil || status != 200 || sent.Task.said("answer") != "Hello, you." {
		t.Fatalf("%d %s %v", status, text, err)
	}
	for path, rpc := range map[string]json.RawMessage{
		"/tasks/" + sent.Task.ID: c.ask("GetTask", fmt.Sprintf(`{"id":%q}`, sent.Task.ID)),
		"/tasks/" + sent.Task.ID + "?historyLength=0": c.ask("GetTask",
			fmt.Sprintf(`{"id":%q,"historyLength":0}`, sent.Task.ID)),
		"/tasks?includeArtifacts=true&pageSize=1&contextId=" + sent.Task.ContextID: c.ask("ListTasks",
			fmt.Sprintf(`{"contextId":%q,"pageSize":1,"includeArtifacts":true}`, sent.Task.ContextID)),
		"/extendedAgentCard": c.ask("GetExtendedAgentCard", `{}`),
	} {
		if status, text := c.plainJSON("GET", path, ""); status != 200 || text != string(rpc) {
			t.Errorf("%s: %d %s, want %s", path, status, text, rpc)
		}
	}

	stream := c.plain("POST", "/message:stream", send("m-2", asking, ""))
	reader := sse.NewReader(stream.Body)
	var id string
	for asked := false; !asked; {
		f, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		var u struct{ Task *struct{ ID string } }
		if err := json.Unmarshal(f.Data, &u); err != nil {
			t.Fatal(err)
		}
		if u.Task != nil {
			id = u.Task.ID
		}
		asked = strings.Contains(string(f.Data), "TASK_STATE_INPUT_REQUIRED")
	}
	cursor := reader.LastEventID()
	stream.Body.Close()
	if status, text := c.plainJSON("POST", "/message:send",
		fmt.Sprintf(`{"message":{"messageId":"m-3","role":"ROLE_USER","taskId":%q,"parts":[{"data":{"decision":"allow"}}]}}`,
			id)); status != 200 || !strings.Contains(text, "It is done.") {
		t.Errorf("%d %s", status, text)
	}
	for _, method := range []string{"GET", "POST"} {
		list, _ := c.with("Last-Event-ID", cursor).plainUpdates(c.with("Last-Event-ID", cursor).plain(method, "/tasks/"+id+":subscribe", ""))
		if whole := strings.Join(list, "\n"); !strings.Contains(whole, "It is done.") || !strings.Contains(list[len(list)-1],
			"TASK_STATE_COMPLETED") || strings.Contains(whole, "jsonrpc") {
			t.Errorf("%s: %s", method, whole)
		}
	}

	_, text = c.plainJSON("POST", "/message:send", strings.Replace(send("m-4", held, ""), `{"message"`,
		`{"configuration":{"returnImmediately":true},"message"`, 1))
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		t.Fatal(err)
	}
	on := "/tasks/" + sent.Task.ID
	wait.For(t, "the turn is at the gate", func() bool { return c.get(sent.Task.ID).state() == "TASK_STATE_WORKING" })
	if status, text := c.plainJSON("POST", on+"/pushNotificationConfigs", `{"id":"mine","url":"http://hook.example/"}`); status != 200 ||
		!strings.Contains(text, `"id":"mine"`) {
		t.Errorf("%d %s", status, text)
	}
	for _, x := range []struct{ method, path, want string }{
		{"GET", "/pushNotificationConfigs", `{"configs":[{"id":"mine"`}, {"GET", "/pushNotificationConfigs/mine", `{"id":"mine"`},
		{"DELETE", "/pushNotificationConfigs/mine", `{}`},
		{"POST", ":cancel", `{"id":"` + sent.Task.ID}, {"GET", "/pushNotificationConfigs", `{"configs":[]`},
	} {
		if status, text := c.plainJSON(x.method, on+x.path, ""); status != 200 || !strings.HasPrefix(text, x.want) {
			t.Errorf("%s %s: %d %s", x.method, x.path, status, text)
		}
	}
}

// TestPlainErrors: an error of HTTP+JSON has the status of HTTP, and the reason in its details.
func TestPlainErrors(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.speaks(t, "1.0")
	ended := c.say("@say Hello.")
	for _, x := range []struct {
		by                         *caller
		method, path, body, reason string
		status                     int
	}{
		{c, "GET", "/tasks/x", "", "TASK_NOT_FOUND", 404},
		{c, "GET", "/tasks/" + ended.ID + ":subscribe", "", "UNSUPPORTED_OPERATION", 400},
		{c, "POST", "/tasks/" + ended.ID + ":cancel", "", "TASK_NOT_CANCELABLE", 409},
		{c, "GET", "/tasks/" + ended.ID + "?historyLength=many", "", "INVALID_REQUEST", 400},
		{c, "GET", "/tasks?status=x", "", "INVALID_REQUEST", 400},
		{c, "POST", "/message:send", `{}`, "INVALID_REQUEST", 400},
		{c, "POST", "/message:send", `{`, "INVALID_JSON", 400},
		{c, "POST", "/message:stream", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"url":"https://example.com/"}]}}`,
			"CONTENT_TYPE_NOT_SUPPORTED", 400},
		{s.speaks(t, "0.3"), "GET", "/tasks/" + ended.ID, "", "VERSION_NOT_SUPPORTED", 400},
		{s.speaks(t, ""), "GET", "/tasks/" + ended.ID, "", "", 200},
	} {
		status, text := x.by.plainJSON(x.method, x.path, x.body)
		if status != x.status || !strings.Contains(text, x.reason) || status != 200 && !strings.Contains(text,
			fmt.Sprintf(`{"error":{"code":%d,`, status)) {
			t.Errorf("%s %s: %d %s, want %d %s", x.method, x.path, status, text, x.status, x.reason)
		}
	}
	for key, status := range map[string]int{"": 401, s.Issue(t, s.Workspace, apikey.Chat): 403} {
		if got, text := c.by(key).plainJSON("GET", "/tasks/"+ended.ID, ""); got != status || !strings.Contains(text, "request_id") {
			t.Errorf("%d %s", got, text)
		}
	}
}
