package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

const inAnswer = `"response_schema":{"type":"object","properties":{"n":{"type":"integer"},"why":{"type":"string"}},"required":["n",` +
	`"why"],"additionalProperties":false}`

// outcome is the result of a turn in a blocking response and in a callback.
type outcome struct {
	Success    bool
	Output     *string
	SessionID  string          `json:"session_id"`
	Structured json.RawMessage `json:"structured_result"`
	References []struct{ Path, Source string }
	Files      []download `json:"attachments"`
	Rejected   []struct {
		FileID string `json:"file_id"`
		Code   string
		Reason string
	} `json:"rejected_attachments"`
	Error *string
}

// everything is a turn that reads, creates a file and answers in a schema, first with an invalid
// answer.
func everything(t testing.TB) *modeltest.Script {
	return &modeltest.Script{Answer: func(r modeltest.Request) modeltest.Reply {
		usage := &model.Usage{InputTokens: 100, OutputTokens: 10}
		asked := string(r.Body)
		switch {
		case strings.Contains(asked, "This does not fit the schema"):
			return modeltest.Reply{Text: []string{`{"n":`, `17,"why":"`, `all of them"}`}, Usage: usage}
		case strings.Contains(asked, `"role":"tool"`):
			return modeltest.Reply{Text: []string{`{"n":"seven`, `teen"}`}, Usage: usage}
		}
		return modeltest.Reply{Text: []string{"I count ", "them. "}, Usage: usage, Calls: []modeltest.Call{
			{ID: "a", Tool: "look", Input: `{"at":"stock"}`},
			{ID: "b", Tool: "attach_file", Input: `{"filename":"out.csv","content":"a,b"}`},
		}}
	}}
}

// TestTheEndOfATurnIsToldAlikeEverywhere checks a turn that has every kind of result. The stream,
// the blocking response, the callback and the list report them in the same order and with the same
// values; only the stream has no references.
func TestTheEndOfATurnIsToldAlikeEverywhere(t *testing.T) {
	t.Parallel()
	s, h := startHookWith(t, func(c *turn.Config) { c.Permissions, c.Model = nil, provider(t, everything(t)) })
	missing := `"attachments":[{"file_id":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}]`
	frames := s.say(t, "How many?", inAnswer, missing).rest()
	if got := names(frames); got != "open attachment_rejected text tool_use tool_result tool_use tool_result usage structured "+
		"attachment done" {
		t.Errorf("%s", got)
	}
	const result = `{"n":17,"why":"all of them"}`
	var text, all string
	for _, f := range frames {
		if all += f.data; f.event == "text" {
			var data struct{ Text string }
			decode(t, []byte(f.data), &data)
			text += data.Text
		}
		if f.event == "structured" && f.data != `{"v":1,"result":`+result+`}` {
			t.Errorf("structured %s", f.data)
		}
		if strings.Contains(f.data, "final_answer") || strings.Contains(f.data, "reference") || strings.Contains(f.data, "stock\",\"source") {
			t.Errorf("%s %s", f.event, f.data)
		}
	}
	if text != "I count them. " || strings.Count(all, "seventeen") != 0 || strings.Count(all, `"n":17`) != 1 {
		t.Errorf("text %q in %s", text, all)
	}

	a, r := s.ask(t, body(t, "How many?", inAnswer, missing, `"stream":false`))
	var blocking, told outcome
	decode(t, []byte(r.text), &blocking)
	h.reply <- 204
	s.callback(t, hookURL, "How many?", inAnswer, missing)
	var report struct{ Data outcome }
	decode(t, wait.Receive(t, "a request at the hook", h.got).raw, &report)
	told = report.Data
	for where, o := range map[string]outcome{"blocking": blocking, "callback": told} {
		if !o.Success || o.Error != nil || o.Output == nil || *o.Output != text || string(o.Structured) != result || len(o.Files) != 1 ||
			o.Files[0].Filename != "out.csv" || o.Files[0].Size != 3 ||
			fmt.Sprint(o.References) != "[{stock read}]" || len(o.Rejected) != 1 || o.Rejected[0].Code != "FILE_NOT_FOUND" ||
			o.Rejected[0].Reason == "" || o.SessionID == "" {
			t.Errorf("%s: %+v", where, o)
		}
	}
	var messages []struct {
		Content    *string
		Structured json.RawMessage `json:"structured_result"`
		References []struct{ Path, Source string }
		Files      []download `json:"attachments"`
	}
	decode(t, s.get(t, call{path: "sessions/" + a.SessionID + "/messages"}).Data, &messages)
	if len(messages) != 2 || *messages[1].Content != text || string(messages[1].Structured) != result || len(messages[1].References) != 1 ||
		len(messages[1].Files) != 1 {
		t.Errorf("%+v", messages)
	}
}

// TestNoSchemaNoStructuredResult checks that without a response_schema no answer yields a
// structured result.
func TestNoSchemaNoStructuredResult(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, func(c *turn.Config) { c.Model = provider(t, modeltest.Say(`{"n":17}`)) })
	if got := names(s.say(t, "How many?").rest()); got != "open text usage done" {
		t.Errorf("%s", got)
	}
	if a, r := s.ask(t, body(t, "How many?", `"stream":false`)); *a.Output != `{"n":17}` || strings.Contains(r.text, "structured_result") {
		t.Errorf("%s", r.text)
	}
}

// TestRefusedSchemas checks that the error for an invalid schema names the place of the mistake,
// and that nothing is stored.
func TestRefusedSchemas(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for schema, param := range map[string]string{
		`{"$ref":"https://example.com/s"}`:                               "/response_schema/$ref",
		`{"properties":{"a":{"type":"int"}}}`:                            "/response_schema/properties/a/type",
		strings.Repeat(`{"items":`, 40) + "{}" + strings.Repeat("}", 40): "/response_schema" + strings.Repeat("/items", 32),
	} {
		r := s.get(t, call{method: "POST", path: "messages", body: body(t, "x", `"response_schema":`+schema)})
		if r.status != 400 || r.Error.Code != "INVALID_RESPONSE_SCHEMA" || len(r.Error.Violations) != 1 || r.Error.Violations[0].Param != param {
			t.Errorf("%.100s: %d %s", schema, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "sessions"}); string(r.Data) != "[]" {
		t.Errorf("refused messages left %s", r.Data)
	}
}
