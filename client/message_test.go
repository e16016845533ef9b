package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/parley-server/parley/client"
)

// recorder answers every call with one body and records the requests.
type recorder struct {
	status int
	answer string
	calls  []string
	bodies []string
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.calls = append(s.calls, r.Method+" "+r.URL.RequestURI())
	s.bodies = append(s.bodies, string(body))
	w.WriteHeader(s.status)
	fmt.Fprint(w, s.answer)
}

func record(t *testing.T, status int, answer string) (*recorder, *client.Client) {
	t.Helper()
	s := &recorder{status: status, answer: answer}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	c := open(t, srv.URL)
	t.Cleanup(c.Close)
	return s, c
}

func TestAMessageIsSentWhole(t *testing.T) {
	t.Parallel()
	s, c := record(t, 202, `{"data":{"session_id":"s","turn_id":"t","callback_id":"c","status":"queued"}}`)
	m := client.Message{
		Skill: "report", Input: client.Input{"month": json.RawMessage(`"2026-10"`)}, SecretInput: []string{"TOKEN"}, SessionID: "s",
		CallerID:       "alice",
		ResponseSchema: json.RawMessage(`{"type":"object"}`), Attachments: []client.Attached{{FileID: "f"}},
		Callback:          &client.Receiver{URL: "https://app.example/", Metadata: map[string]string{"order": "17"}},
		MultitaskStrategy: "enqueue", Limits: &client.Limits{MaxResponseSeconds: 9, MaxTurns: 3, MaxCostUSD: new(0.0)}, Effort: "low",
	}
	q, err := c.Submit(t.Context(), m)
	if err != nil || q.CallbackID != "c" || q.TurnID != "t" || string(q.Raw) != s.answer {
		t.Errorf("%+v, %v", q, err)
	}
	for range c.Send(t.Context(), m) {
	}
	want := `{"skill":"report","input":{"month":"2026-10"},"secret_input":["TOKEN"],"session_id":"s","caller_id":"alice",` +
		`"response_schema":{"type":"object"},` +
		`"attachments":[{"file_id":"f"}],"callback":{"url":"https://app.example/","metadata":{"order":"17"}},"multitask_strategy":"enqueue",` +
		`"limits":{"max_response_seconds":9,"max_turns":3,"max_cost_usd":0},"effort":"low","stream":%v}`
	for i, stream := range []bool{false, true} {
		if want := fmt.Sprintf(want, stream); s.bodies[i] != want {
			t.Errorf("sent %s\nwant %s", s.bodies[i], want)
		}
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	s, c := record(t, 200, `{"data":{"approval_id":"a","kind":"approval","status":"allowed","decided_by":{"key_id":"k"},`+
		`"allowlist_pattern":null,"session_id":"s","already_decided":true}}`)
	d, err := c.Decide(t.Context(), "a", client.Decision{Decision: "allow", Pattern: "bash(ls)"})
	if err != nil || d.Status != "allowed" || !d.Already || d.DecidedBy.KeyID != "k" {
		t.Errorf("%+v, %v", d, err)
	}
	for _, call := range []func() error{
		func() error {
			_, err := c.Decide(t.Context(), "a", client.Decision{Decision: "deny", Reason: "No."})
			return err
		},
		func() error { _, err := c.ProvideSecret(t.Context(), "a", "s3cr3t <&>", "anna"); return err },
		func() error { _, err := c.SkipSecret(t.Context(), "a", ""); return err },
		func() error { _, err := c.Approval(t.Context(), "a"); return err },
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	// the response is not a list
	_, _ = c.Approvals(t.Context(), client.ApprovalQuery{Status: "pending", SessionID: "s", Limit: 3, Cursor: "x"})
	const decide, secret = "POST /api/workspaces/w/approvals/a/decide", "POST /api/v1/workspaces/w/approvals/a/secret"
	if want := []string{decide, decide, secret, secret, "GET /api/v1/workspaces/w/approvals/a",
		"GET /api/v1/workspaces/w/approvals?cursor=x&limit=3&session_id=s&status=pending"}; !reflect.DeepEqual(s.calls, want) {
		t.Errorf("calls %q", s.calls)
	}
	if want := []string{`{"decision":"allow","allowlist_pattern":"bash(ls)"}`, `{"decision":"deny","reason":"No."}`,
		`{"action":"provide","value":"s3cr3t \u003c\u0026\u003e","actor":"anna"}`, `{"action":"skip"}`, "",
		""}; !reflect.DeepEqual(s.bodies, want) {
		t.Errorf("bodies %q", s.bodies)
	}

	s.status, s.answer = 409, `{"error":{"code":"APPROVAL_ALREADY_DECIDED","message":"Before.","status":"denied"}}`
	_, err = c.ProvideSecret(t.Context(), "a", "s3cr3t", "")
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Standing != "denied" || e.Status != 409 {
		t.Errorf("error %v", err)
	}
}

func TestAStreamGoesOnOverQuestions(t *testing.T) {
	t.Parallel()
	s := &wire{keys: map[string]bool{}, cuts: []int{400, 0, 150}, frames: []string{
		"open\n{\"session_id\":\"" + session + "\"}",
		`input_required` + "\n" + `{"v":1,"kind":"approval","plan":"I will.","operations":[{"tool_use_id":"c","tool":"wiki_write",` +
			`"summary":"write","input":{"page":"tea"},"suggested_pattern":"wiki_write(tea)"}],"approval_id":"` + session +
			`","decide_url":"/d","expires_at":"2026-01-31T12:00:00Z"}`,
		"tool_use\n{\"v\":1,\"tool\":\"wiki_write\",\"summary\":\"write\"}",
		"structured\n{\"v\":1,\"result\":{\"a\":1}}",
		"attachment\n{\"v\":1,\"attachments\":[{\"filename\":\"a.csv\",\"mime\":\"text/csv\",\"size\":7,\"download_url\":\"https://x\"}]}",
		"done\n{\"v\":1,\"session_id\":\"" + session + "\"}",
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	c := open(t, srv.URL)
	defer c.Close()
	var asked client.InputRequired
	var result client.Structured
	var files client.Attachment
	n := 0
	for f, err := range c.Send(t.Context(), client.Message{Command: "hi"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		body, err := f.Body()
		if err != nil {
			t.Fatal(err)
		}
		switch b := body.(type) {
		case client.InputRequired:
			asked = b
		case client.Structured:
			result = b
		case client.Attachment:
			files = b
		}
	}
	if n != 6 || len(s.calls) != 4 {
		t.Errorf("%d frames over %v", n, s.calls)
	}
	if len(asked.Operations) != 1 || asked.Operations[0].SuggestedPattern != "wiki_write(tea)" || string(result.Result) != `{"a":1}` ||
		len(files.Attachments) != 1 || files.Attachments[0].Size != 7 {
		t.Errorf("%+v, %s, %+v", asked, result.Result, files)
	}
}
