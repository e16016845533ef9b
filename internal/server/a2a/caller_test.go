package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/server/a2a"
)

// caller sends requests in one protocol version with one key.
type caller struct {
	*service
	t      testing.TB
	v      string // "" sends no version
	key    string
	header map[string]string
}

func (s *service) speaks(t testing.TB, version string) *caller {
	return &caller{service: s, t: t, v: version, key: s.key}
}

// with returns the same caller with another header.
func (c *caller) with(name, value string) *caller {
	other := *c
	other.header = map[string]string{name: value}
	return &other
}

// by returns the same caller with another key.
func (c *caller) by(key string) *caller {
	other := *c
	other.key = key
	return &other
}

// post sends a body unchanged.
func (c *caller) post(ctx context.Context, body string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+a2a.Path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// do sends a request with the caller's key, version and headers.
func (c *caller) do(r *http.Request) (*http.Response, error) {
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.v != "" {
		r.Header.Set("A2A-Version", c.v)
	}
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	return c.client.Do(r)
}

// rpcError is the error of a response.
type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// call calls a method. params is JSON.
func (c *caller) call(method, params string) (json.RawMessage, *rpcError) {
	c.t.Helper()
	res := c.post(c.t.Context(), fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":%s}`, method, params))
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var body struct {
		JSONRPC string
		ID      any
		Result  json.RawMessage
		Error   *rpcError
	}
	if err := json.Unmarshal(text, &body); err != nil || res.StatusCode != 200 || body.JSONRPC != "2.0" || body.ID != "x" ||
		(body.Error == nil) == (body.Result == nil) {
		c.t.Fatalf("%s: %d %s %v", method, res.StatusCode, text, err)
	}
	return body.Result, body.Error
}

// ask calls a method that must succeed.
func (c *caller) ask(method, params string) json.RawMessage {
	c.t.Helper()
	result, e := c.call(method, params)
	if e != nil {
		c.t.Fatalf("%s %s: %+v %s", method, params, e, e.Data)
	}
	return result
}

// refused calls a method that must fail with a code.
func (c *caller) refused(code int, method, params string) *rpcError {
	c.t.Helper()
	result, e := c.call(method, params)
	if e == nil || e.Code != code {
		c.t.Errorf("%s %s: %s %+v, want %d", method, params, result, e, code)
		return &rpcError{}
	}
	return e
}

// task is a task in either version.
type task struct {
	ID        string
	ContextID string
	Status    struct {
		State, Timestamp string
		Message          *message
	}
	Artifacts []struct {
		ArtifactID string
		Parts      []part
	}
	History  []message
	Metadata map[string]json.RawMessage
}

type message struct {
	MessageID, Role, TaskID, ContextID string
	Parts                              []part
}

type part struct {
	Kind, URL, Filename, MediaType string
	Text                           *string
	Data                           json.RawMessage
	File                           struct{ URI, Name, MIMEType string }
}

// state returns the state of a task in the terms of 1.0.
func (t *task) state() string {
	return "TASK_STATE_" + strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(t.Status.State, "-", "_")), "TASK_STATE_")
}

// said returns the text of an artifact.
func (t *task) said(id string) string {
	for _, a := range t.Artifacts {
		if a.ArtifactID == id {
			if a.Parts[0].Text != nil {
				return *a.Parts[0].Text
			}
			return string(a.Parts[0].Data)
		}
	}
	return ""
}

// read parses a task, wrapped or not.
func (c *caller) read(raw json.RawMessage) *task {
	c.t.Helper()
	var wrapped struct{ Task *task }
	if err := json.Unmarshal(raw, &wrapped); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	if wrapped.Task != nil {
		return wrapped.Task
	}
	var bare task
	if err := json.Unmarshal(raw, &bare); err != nil || bare.ID == "" {
		c.t.Fatalf("%s: %v", raw, err)
	}
	return &bare
}

// name returns the name for the caller's version.
func (c *caller) name(v10, v03 string) string {
	if c.v == "1.0" {
		return v10
	}
	return v03
}

var ids struct {
	sync.Mutex
	n int
}

// unique returns an id that no message has.
func unique() string {
	ids.Lock()
	defer ids.Unlock()
	ids.n++
	return fmt.Sprintf("m-%d", ids.n)
}

// params returns the parameters of a message. more are members of the message, as `"name":value`.
func (c *caller) params(id, parts string, conf string, more ...string) string {
	role := c.name("ROLE_USER", "user")
	members := append([]string{fmt.Sprintf(`"kind":"message","messageId":%q,"role":%q,"parts":%s`, id, role, parts)}, more...)
	if conf == "" {
		conf = "{}"
	}
	return fmt.Sprintf(`{"message":{%s},"configuration":%s}`, strings.Join(members, ","), conf)
}

// text returns the parts of a message with one text.
func text(s string) string {
	raw, _ := json.Marshal(s)
	return fmt.Sprintf(`[{"kind":"text","text":%s}]`, raw)
}

// data returns the parts of a message with one object.
func data(object string) string { return `[{"kind":"data","data":` + object + `}]` }

// atOnce is the configuration of a call that does not wait.
func (c *caller) atOnce() string { return c.name(`{"returnImmediately":true}`, `{"blocking":false}`) }

// say sends a command and waits for its task.
func (c *caller) say(command string, more ...string) *task {
	c.t.Helper()
	return c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text(command), "", more...)))
}

func (c *caller) get(id string) *task {
	c.t.Helper()
	return c.read(c.ask(c.name("GetTask", "tasks/get"), fmt.Sprintf(`{"id":%q}`, id)))
}
