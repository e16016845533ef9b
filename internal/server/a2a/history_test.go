package a2a_test

import (
	"fmt"
	"io"
	"net/url"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// TestAMessageComesBackWhole checks that every copy of a message has the id that its client gave
// it, and its files with addresses that work.
func TestAMessageComesBackWhole(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		id, file := "the client's own id "+unique(), upload(t, c)
		parts := text(held)[:len(text(held))-1] + fmt.Sprintf(`,{"kind":"data","data":{"file_id":%q}}]`, file)
		conf := c.name(`{"taskPushNotificationConfig":{"url":"http://hook.example/"}}`,
			`{"pushNotificationConfig":{"url":"http://hook.example/"}}`)
		same := func(where, base string, got *task) {
			t.Helper()
			if len(got.History) != 1 || got.History[0].MessageID != id || got.History[0].Role != c.name("ROLE_USER", "user") ||
				got.History[0].TaskID != got.ID ||
				got.History[0].ContextID != got.ContextID || len(got.History[0].Parts) != 2 || *got.History[0].Parts[0].Text != held {
				t.Errorf("%s: %+v", where, got.History)
				return
			}
			part := got.History[0].Parts[1]
			at, name, mime := part.URL, part.Filename, part.MediaType
			if c.v == "0.3" {
				at, name, mime = part.File.URI, part.File.Name, part.File.MIMEType
			}
			if name != "a.txt" || mime != "text/plain" || part.Text != nil || part.Kind != c.name("", "file") {
				t.Errorf("%s: %+v", where, part)
			}
			if held := c.opened(base, at); held != "hi" {
				t.Errorf("%s: %q at %s", where, held, at)
			}
		}
		s := c.open(c.name("SendStreamingMessage", "message/stream"), c.params(id, parts, conf))
		first := s.until("WORKING")
		same("stream", c.URL, first[0].task)
		c.Gate.Await(t)
		back, again := c.resume(first[0].task.ID, ""), c.resume(first[0].task.ID, first[0].id)
		c.Gate.Leave <- struct{}{}
		same("webhook", "https://parley.example", c.told(wait.Receive(t, "a request at the hook", c.hook.got)))
		same("resubscribe", c.URL, back.rest()[0].task)
		same("resubscribe with Last-Event-ID", c.URL, again.rest()[0].task)
		same("get", c.URL, c.get(first[0].task.ID))
		same("the same message again", c.URL, c.read(c.ask(c.name("SendMessage", "message/send"), c.params(id, parts, conf))))
		if c.v == "1.0" {
			for _, one := range c.list(fmt.Sprintf(`{"contextId":%q,"historyLength":1}`, first[0].task.ContextID)).Tasks {
				same("list", c.URL, one)
			}
		}
		s.rest()
	})
}

// opened returns the content of a file at an address below base.
func (c *caller) opened(base, address string) string {
	c.t.Helper()
	at, err := url.Parse(address)
	if err != nil || at.Scheme+"://"+at.Host != base {
		c.t.Errorf("%q is not below %s: %v", address, base, err)
		return ""
	}
	content, err := c.Files.Open(c.t.Context(), at.EscapedPath(), at.RawQuery)
	if err != nil {
		c.t.Errorf("%s: %v", address, err)
		return ""
	}
	held, err := io.ReadAll(content.Reader(c.t.Context()))
	if err != nil {
		c.t.Error(err)
	}
	return string(held)
}
