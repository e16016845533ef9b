package modeltest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/wait"
)

// checkFailure checks that err is a mapped failure without internal details.
func checkFailure(t *testing.T, what string, err error, code event.Code, retryable bool) *model.Error {
	t.Helper()
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Errorf("%s: error %T %v, want *model.Error", what, err, err)
		return &model.Error{}
	}
	if e.Code != code || e.Retryable != retryable {
		t.Errorf("%s: %s retryable=%t (%s), want %s retryable=%t", what, e.Code, e.Retryable, e.Message, code, retryable)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if text := fmt.Sprintf("%v %+v", inner, inner); strings.Contains(text, Key) {
			t.Errorf("%s: the error contains the key: %s", what, text)
		}
	}
	for _, name := range []string{"openai", "anthropic", "_KEY", "_URL"} {
		if e.Message == "" || strings.Contains(e.Message, name) {
			t.Errorf("%s: %q is not a message for end users", what, e.Message)
		}
	}
	return e
}

// testLargeReplies sends replies of the largest size that is accepted, and larger ones.
func (s Suite) testLargeReplies(t *testing.T) {
	t.Parallel()
	input := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	calls := func(n, size int) []Call { return slices.Repeat([]Call{{Tool: "read", Input: input(size)}}, n) }
	const mib = 1 << 20
	for what, c := range map[string]struct {
		reply Reply
		limit string // "": accepted
	}{
		"text":           {Reply{Text: slices.Repeat([]string{strings.Repeat("x", mib/16)}, 16)}, ""},
		"more text":      {Reply{Text: slices.Repeat([]string{strings.Repeat("x", mib/16)}, 17)}, "1048576 bytes of text"},
		"calls":          {Reply{Calls: calls(100, 20)}, ""},
		"more calls":     {Reply{Calls: calls(101, 20)}, "100 tool calls"},
		"arguments":      {Reply{Calls: calls(3, mib)}, ""},
		"more arguments": {Reply{Calls: calls(1, mib+1)}, "1048576 bytes of arguments in a tool call"},
		"all together":   {Reply{Calls: calls(5, mib)}, "4194304 bytes"},
		"one event":      {Reply{Frames: slices.Repeat([]string{"data: " + strings.Repeat("x", mib) + "\n"}, 9)}, "8388608 bytes in one event"},
	} {
		m := s.startModel(t, &Script{Replies: []Reply{c.reply}})
		_, err := Read(m.Generate(t.Context(), askText("hello")))
		if c.limit == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if e := checkFailure(t, what, err, event.ModelError, false); !strings.Contains(e.Message, " more than "+c.limit+",") {
			t.Errorf("%s: %s", what, e.Message)
		}
	}
}

// testCutConnections breaks the connection inside and after every frame, by a reset and by a
// regular end of the body.
func (s Suite) testCutConnections(t *testing.T) {
	t.Parallel()
	whole := Reply{Text: []string{"one ", "two ", "three"}, Calls: []Call{{"call_a", "read", `{"path":"a"}`}},
		Usage: &model.Usage{InputTokens: 1, OutputTokens: 1}}
	all := s.Frames(Request{Body: []byte(`{"stream_options":{"include_usage":true}}`)}, whole)
	const text = "one two three"
	ended := slices.IndexFunc(all, func(f string) bool {
		return strings.Contains(f, `"finish_reason":"tool_calls"`) || strings.Contains(f, `"message_stop"`) ||
			strings.Contains(f, `"response.completed"`)
	})
	for n := range ended + 1 {
		for _, reset := range []bool{false, true} {
			reply := Reply{Frames: append(slices.Clone(all[:n]), all[n][:len(all[n])/2])}
			if reset {
				reply.Cut = len(reply.Frames)
			}
			what := fmt.Sprintf("cut in frame %d of %d, reset=%t", n, len(all), reset)
			m := s.startModel(t, &Script{Replies: []Reply{reply}})
			got, err := Read(m.Generate(t.Context(), askText("hello")))
			checkFailure(t, what, err, event.ModelError, true)
			if !strings.HasPrefix(text, got.Text) || len(got.Calls) > 0 || got.Stop != "" {
				t.Errorf("%s: received %+v", what, got)
			}
		}
	}
	m := s.startModel(t, &Script{Replies: []Reply{{Frames: all[:ended+1]}}})
	if got, err := Read(m.Generate(t.Context(), askText("hello"))); err != nil || got.Text != text || len(got.Calls) != 1 ||
		got.Stop != model.StopTools {
		t.Errorf("ended after the last text: %+v, %v", got, err)
	}
}

func (s Suite) testBrokenFrames(t *testing.T) {
	t.Parallel()
	begun := s.Frames(Request{}, Reply{Text: []string{"one "}})[:2]
	for what, reply := range map[string]Reply{
		"empty stream":     {Frames: []string{""}},
		"comments only":    {Frames: []string{": nothing\n\n", ": to say\n\n"}},
		"done at once":     {Frames: []string{"data: [DONE]\n\n"}},
		"garbage at once":  {Frames: []string{s.Garbage}},
		"garbage later":    {Frames: append(slices.Clone(begun), s.Garbage)},
		"no stream at all": {Header: http.Header{"Content-Type": {"application/json"}}, Frames: []string{`{"choices":[]}`}},
	} {
		script := &Script{Replies: []Reply{reply}}
		_, err := Read(s.startModel(t, script).Generate(t.Context(), askText("hello")))
		checkFailure(t, what, err, event.ModelError, true)
		if n := len(script.Requests()); n != 1 {
			t.Errorf("%s: %d requests, want 1", what, n)
		}
	}

	closed := httptest.NewServer(http.NotFoundHandler())
	m := s.New(closed.URL, closed.Client())
	closed.Close()
	_, err := Read(m.Generate(t.Context(), askText("hello")))
	if e := checkFailure(t, "connection refused", err, event.ModelError, true); !e.Admin || !strings.Contains(e.Hint, "_BASE_URL") {
		t.Errorf("connection refused: %+v", e)
	}
}

func (s Suite) testErrorInside(t *testing.T) {
	t.Parallel()
	begun := s.Frames(Request{}, Reply{Text: []string{"one "}})[:2]
	for kind, want := range map[string]struct {
		code      event.Code
		retryable bool
	}{
		"overloaded_error":     {event.ModelOverloaded, true},
		"rate_limit_error":     {event.ModelOverloaded, true},
		"api_error":            {event.ModelError, true},
		"server_error":         {event.ModelError, true},
		"authentication_error": {event.ModelError, false},
		"billing_error":        {event.ModelError, false},
		"content_filter":       {event.ContentRefused, false},
	} {
		reply := Reply{Frames: append(slices.Clone(begun), s.Failure(kind))}
		_, err := Read(s.startModel(t, &Script{Replies: []Reply{reply}}).Generate(t.Context(), askText("hello")))
		checkFailure(t, kind, err, want.code, want.retryable)
	}
}

func (s Suite) testStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    int
		body      string
		code      event.Code
		retryable bool
		says      string
	}{
		{429, ``, event.ModelOverloaded, true, "overloaded"},
		{503, `<html>` + Key, event.ModelOverloaded, true, "overloaded"},
		{529, ``, event.ModelOverloaded, true, "overloaded"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, event.ModelOverloaded, true, "overloaded"},
		{500, `{"error":{"type":"overloaded_error"}}`, event.ModelOverloaded, true, "overloaded"},
		{500, `{"error":"` + Key + `"}`, event.ModelError, true, "failed"},
		{502, `bad gateway ` + Key, event.ModelError, true, "failed"},
		{504, ``, event.ModelError, true, "failed"},
		{408, ``, event.ModelError, true, "failed"},
		{400, `{"error":{"message":"` + Key + `","type":"invalid_request_error"}}`, event.ModelError, false, "did not accept the request"},
		{422, `{"detail":[]}`, event.ModelError, false, "did not accept the request"},
		{401, `{"error":{"message":"Incorrect API key provided: ` + Key + `"}}`, event.ModelError, false, "_API_KEY"},
		{403, ``, event.ModelError, false, "_API_KEY"},
		{404, `404 page not found`, event.ModelError, false, "_BASE_URL"},
		{402, ``, event.ModelError, false, "billing"},
		{429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`, event.ModelError, false, "billing"},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`,
			event.ModelError, false, "billing"},
		{400, `{"error":{"code":"context_length_exceeded"}}`, event.ModelError, false, "longer"},
		{400, `{"error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, event.ModelError,
			false, "longer"},
		{413, ``, event.ModelError, false, "longer"},
		{400, `{"error":{"code":"content_filter","message":"` + Key + `"}}`, event.ContentRefused, false, "refused"},
	} {
		script := &Script{Replies: []Reply{{Status: c.status, Body: c.body, Header: http.Header{"Retry-After": {"7"},
			"X-Request-Id": {"req_42"}}}}}
		_, err := Read(s.startModel(t, script).Generate(t.Context(), askText("hello")))
		what := fmt.Sprintf("%d %s", c.status, c.body)
		e := checkFailure(t, what, err, c.code, c.retryable)
		if !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %q does not contain %q", what, e.Error(), c.says)
		}
		if e.Admin != (e.Message == model.Unavailable) || e.TooLong != (c.says == "longer") {
			t.Errorf("%s: %+v", what, e)
		}
		if e.RetryAfter != 7*time.Second {
			t.Errorf("%s: retry after %v, want 7s", what, e.RetryAfter)
		}
		if e.Status != c.status || e.RequestID != "req_42" || e.Model != s.startModel(t, script).Name() {
			t.Errorf("%s: %+v", what, e)
		}
		if e.Err == nil || !strings.Contains(e.Err.Error(), fmt.Sprint(c.status)) || !strings.Contains(e.Err.Error(), "req_42") {
			t.Errorf("%s: cause %v names neither status nor request", what, e.Err)
		}
		if n := len(script.Requests()); n != 1 {
			t.Errorf("%s: %d requests, want 1: only the agent retries", what, n)
		}
	}
}

func (s Suite) testRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := Say("gotcha")
	thief := s.Serve(elsewhere)
	t.Cleanup(thief.Close)
	script := &Script{Answer: func(r Request) Reply {
		return Reply{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {thief.URL + r.Path}}}
	}}
	_, err := Read(s.startModel(t, script).Generate(t.Context(), askText("hello")))
	e := checkFailure(t, "redirect", err, event.ModelError, false)
	if !strings.Contains(e.Hint, "_BASE_URL") {
		t.Errorf("hint %q", e.Hint)
	}
	if n := len(elsewhere.Requests()); n != 0 {
		t.Error("the request with its key was sent to another host")
	}

	page := &Script{Replies: []Reply{{Header: http.Header{"Content-Type": {"text/html"}}, Frames: []string{"<html>" + Key}}}}
	_, err = Read(s.startModel(t, page).Generate(t.Context(), askText("hello")))
	checkFailure(t, "web page", err, event.ModelError, false)

	for _, base := range []string{"127.0.0.1:8080", "ftp://" + Key + "@host", "http://", "http://%zz", "https://[" + Key} {
		_, err := Read(s.New(base, http.DefaultClient).Generate(t.Context(), askText("hello")))
		checkFailure(t, base, err, event.ModelError, false)
	}
}

func (s Suite) testCanceled(t *testing.T) {
	t.Parallel()
	script := &Script{Replies: []Reply{{Text: []string{"one ", "two"}, Hold: 4}}}
	m := s.startModel(t, script)
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	for c, err := range m.Generate(ctx, askText("hello")) {
		if last = err; c.Text != "" {
			cancel()
		}
	}
	if last != context.Canceled {
		t.Errorf("canceled while reading: %v", last)
	}
	wait.Receive(t, "the end of the request", script.Gone())

	if _, err := Read(m.Generate(ctx, askText("hello"))); err != context.Canceled {
		t.Errorf("canceled before the request: %v", err)
	}
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := Read(m.Generate(expired, askText("hello"))); err != context.DeadlineExceeded {
		t.Errorf("out of time: %v", err)
	}
}

func (s Suite) brokenOff(t *testing.T) {
	t.Parallel()
	script := &Script{Replies: []Reply{{Text: []string{"one ", "two"}, Hold: 4}}}
	m := s.startModel(t, script)
	for c, err := range m.Generate(t.Context(), askText("hello")) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Text != "" {
			break
		}
	}
	wait.Receive(t, "the end of the request", script.Gone()) // the server's request ended: no cost for the rest
}
