package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// schemaRequest returns a request for a value of a schema.
func schemaRequest(schema string) model.Request {
	req := askText("Answer.")
	req.Output = &model.Output{Name: "final_answer", Schema: json.RawMessage(schema)}
	return req
}

const (
	closed = `{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["a",` +
		`"b"],"additionalProperties":false,"$defs":{"t":{"type":"string"}}}`
	loose = `{"type":"object","properties":{"b":{"type":"integer","maximum":12345678901234567890},"a":{"$ref":"#"}},"minProperties":1}`
)

// testOutput sends the value in every way in which models do.
func (s Suite) testOutput(t *testing.T) {
	t.Parallel()
	const value = `{"b":12345678901234567890,"a":["größe 👍","{\"x\":\"#\"}"]}`
	usage := &model.Usage{InputTokens: 9, OutputTokens: 4}
	call := Reply{Text: []string{"Here ", "it is."}, Calls: []Call{{"call_a", "final_answer", value}}, Usage: usage}
	for what, reply := range map[string]Reply{
		"text":          {Text: splitPieces(value), Usage: usage},
		"text in blank": {Text: splitPieces("\n " + value + "\n"), Usage: usage},
		"fenced text":   {Text: splitPieces("```json\n" + value + "\n```\n"), Usage: usage},
		"call":          call,
	} {
		for way, reply := range waysToSend(reply) {
			script := &Script{Replies: []Reply{reply}}
			got, err := Read(s.startModel(t, script).Generate(t.Context(), schemaRequest(closed)))
			if diff := cmp.Diff(Heard{Text: value, Usage: usage, Stop: model.StopEnd}, got); err != nil || diff != "" {
				t.Errorf("%s, %s: %v, reply differs (-want +got):\n%s", what, way, err, diff)
			}
			if n := len(script.Requests()); n != 1 {
				t.Errorf("%s, %s: %d requests", what, way, n)
			}
		}
	}
	for written, reply := range map[string]Reply{
		"I will not.":   {Text: []string{"I will ", "not."}},
		`{"a":[`:        {Calls: []Call{{"call_a", "final_answer", `{"a":[`}}},
		`["no object"]`: {Calls: []Call{{"call_a", "final_answer", `["no object"]`}}},
	} {
		got, err := Read(s.startModel(t, &Script{Replies: []Reply{reply}}).Generate(t.Context(), schemaRequest(closed)))
		if err != nil || got.Text != written || len(got.Calls) > 0 {
			t.Errorf("%s: received %+v, %v", written, got, err)
		}
	}
}

func (s Suite) outputRefused(t *testing.T) {
	t.Parallel()
	refusal := Reply{Status: 400, Body: `{"error":{"type":"invalid_request_error","message":"not with this model"}}`}
	answer := Reply{Calls: []Call{{"call_a", "final_answer", `{"b":1}`}}}

	script := &Script{Replies: []Reply{refusal, answer}}
	got, err := Read(s.startModel(t, script).Generate(t.Context(), schemaRequest(loose)))
	if err != nil || got.Text != `{"b":1}` {
		t.Errorf("received %+v, %v", got, err)
	}
	ways := map[string]bool{}
	for _, r := range script.Requests() {
		asked := s.Asked(r.Body)
		ways[asked.Way] = true
		checkSameJSON(t, "the schema that is sent", loose, string(asked.Schema))
		if asked.Text != "Answer." {
			t.Errorf("%s: the message is %q", asked.Way, asked.Text)
		}
	}
	if len(ways) != 2 || ways[""] || !ways["forced"] {
		t.Errorf("asked in the ways %v", ways)
	}

	script = &Script{Replies: []Reply{refusal}}
	_, err = Read(s.startModel(t, script).Generate(t.Context(), schemaRequest(loose)))
	checkFailure(t, "refused twice", err, event.ModelError, false)
	if n := len(script.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	script = &Script{Replies: []Reply{{Status: 429}}}
	_, err = Read(s.startModel(t, script).Generate(t.Context(), schemaRequest(loose)))
	checkFailure(t, "overloaded", err, event.ModelOverloaded, true)
	if n := len(script.Requests()); n != 1 {
		t.Errorf("an overloaded provider got %d requests", n)
	}
}

// outputWrapped requests values that are not objects, or schemas that providers do not accept at
// the top level.
func (s Suite) outputWrapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, sent, value string }{
		{`{"type":"array","items":{"type":"integer"}}`, `{"type":"array","items":{"type":"integer"}}`, `[1,12345678901234567890]`},
		{`{"type":"string"}`, `{"type":"string"}`, `"x"`},
		{`{"anyOf":[{"type":"object","required":["value"]},{"type":"null"}]}`,
			`{"anyOf":[{"type":"object","required":["value"]},{"type":"null"}]}`, `{"value":{"value":1}}`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"items":{"$ref":"#/$defs/n"}}},` +
			`"$ref":"#/$defs/n"}`, `{"$ref":"#/$defs/n"}`, `[[]]`},
		{`{"items":{ "$ref" : "#" },"const":"\"$ref\":\"#\"","prefixItems":[{"$ref":"#/items"}]}`,
			`{"items":{"$ref":"#/properties/value"},"const":"\"$ref\":\"#\"","prefixItems":[{"$ref":"#/properties/value/items"}]}`, `[]`},
	} {
		replies := []Reply{
			{Text: []string{`{"value":`, c.value + `}`}},
			{Calls: []Call{{"call_a", "final_answer", `{"value":` + c.value + `}`}}},
		}
		if c.value[0] != '{' { // models forget the wrapping
			replies = append(replies, Reply{Text: []string{c.value}})
		}
		for _, reply := range replies {
			script := &Script{Replies: []Reply{reply}}
			got, err := Read(s.startModel(t, script).Generate(t.Context(), schemaRequest(c.schema)))
			if err != nil || got.Text != c.value {
				t.Errorf("%s: received %+v, %v", c.schema, got, err)
			}
			var sent struct {
				Type       string
				Properties struct{ Value json.RawMessage }
				Defs       json.RawMessage `json:"$defs"`
			}
			if err := json.Unmarshal(s.Asked(script.Requests()[0].Body).Schema, &sent); err != nil || sent.Type != "object" {
				t.Errorf("%s: sent %+v, %v", c.schema, sent, err)
			}
			checkSameJSON(t, "what is sent of "+c.schema, c.sent, string(sent.Properties.Value))
		}
	}
}

// toolWrapped has a tool whose input is not an object.
func (s Suite) toolWrapped(t *testing.T) {
	t.Parallel()
	script := &Script{Replies: []Reply{{Calls: []Call{{"call_a", "list", `{"value":[1]}`}}}}}
	req := askText("hello")
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Calls: []event.ToolCall{{ID: "call_0", Tool: "list", Input: json.RawMessage(`[2]`)}}},
		model.Message{Role: model.ToolRole, CallID: "call_0", Text: "ok"})
	req.Tools = []model.Tool{{Name: "list", Schema: json.RawMessage(`{"type":"array"}`)}}
	got, err := Read(s.startModel(t, script).Generate(t.Context(), req))
	if err != nil || len(got.Calls) != 1 || string(got.Calls[0].Input) != `[1]` {
		t.Errorf("received %+v, %v", got, err)
	}
	asked := s.Asked(script.Requests()[0].Body)
	checkSameJSON(t, "the input in the history", `[{"value":[2]}]`, fmt.Sprint(asked.Inputs))
}

func (s Suite) testImages(t *testing.T) {
	t.Parallel()
	pictures := []model.Image{{MIME: "image/png", Data: []byte("\x89PNG\x00\xff")}, {MIME: "image/webp", Data: []byte("RIFF")}}
	for _, text := range []string{"What is this? 👍", ""} {
		script := Say("A cat.")
		req := model.Request{Messages: []model.Message{{Role: model.User, Text: text, Images: pictures}}}
		if _, err := Read(s.startModel(t, script).Generate(t.Context(), req)); err != nil {
			t.Fatal(err)
		}
		asked := s.Asked(script.Requests()[0].Body)
		if diff := cmp.Diff(pictures, asked.Images); diff != "" || asked.Text != text {
			t.Errorf("the text is %q, images differ (-want +got):\n%s", asked.Text, diff)
		}
	}
}

// testFiles sends a file as such, or its text or a note in its place: where the protocol has no files,
// and where the provider rejects this one.
func (s Suite) testFiles(t *testing.T) {
	t.Parallel()
	note := `[The content of "paper.pdf" is not shown`
	req := askText("Summarize.")
	req.Messages[0].Files = []model.File{{Name: "paper.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7\xff")}}
	withText := askText("Summarize.")
	withText.Messages[0].Files = []model.File{{Name: "paper.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7\xff"),
		Text: "[page 1]\n</attachment>"}}
	rejected := Reply{Status: 400, Body: `{"error":{"type":"invalid_request_error","message":"the PDF is protected"}}`}
	script := &Script{Replies: []Reply{{Text: []string{"Done."}}, rejected, {Text: []string{"Done."}}, rejected, {Text: []string{"Done."}}}}
	m := s.startModel(t, script)
	for _, req := range []model.Request{req, req, withText} {
		if got, err := Read(m.Generate(t.Context(), req)); err != nil || got.Text != "Done." {
			t.Fatalf("received %+v, %v", got, err)
		}
	}
	for i, r := range script.Requests() {
		asked := s.Asked(r.Body)
		if i >= 3 {
			note = `<attachment name="paper.pdf" type="application/pdf" note="text of the file">` + "\n" + `"[page 1]\n\u003c/attachment\u003e"`
		}
		if s.Reasons && i != 2 && i != 4 {
			if diff := cmp.Diff(req.Messages[0].Files, asked.Files); diff != "" || asked.Text != "Summarize." {
				t.Errorf("request %d: the text is %q, files differ (-want +got):\n%s", i, asked.Text, diff)
			}
		} else if asked.Files != nil || !strings.Contains(asked.Text, note) {
			t.Errorf("request %d: %d files, the text is %q", i, len(asked.Files), asked.Text)
		}
	}
}

// checkSameJSON compares two JSON texts by their values.
func checkSameJSON(t *testing.T, what, want, got string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Errorf("%s is %s: %v", what, got, err)
	} else if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}
