package server_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestHostileFields checks that every value of a field is either rejected with a reason or ignored,
// and never causes an internal error.
func TestHostileFields(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	text := `[{"id":"m","role":"user","content":"hi","parts":[{"type":"text","text":"hi"}]}]`
	doors := map[string]map[string]string{
		apitest.CompletionsPath: {"model": `"demo"`, "messages": text, "user": `"u"`, "stream": `false`,
			"stream_options": `{"include_usage":true}`, "n": `1`,
			"response_format": `{"type":"text"}`, "session_id": `null`, "attachments": `[]`, "limits": `{}`,
			"multitask_strategy": `"enqueue"`, "caller_id": `"x"`, "tools": `[]`},
		"/openai/v1/responses": {"model": `"demo"`, "input": `[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]`,
			"previous_response_id": `null`, "conversation": `"c"`,
			"text": `{"format":{"type":"text"}}`, "stream": `true`, "multitask_strategy": `"enqueue"`},
		apitest.UIChatPath: {"id": `"c"`, "messages": text, "messageId": `"m"`, "trigger": `"submit-message"`,
			"multitask_strategy": `"enqueue"`, "secret_input": `[]`, "skill": `null`, "input": `null`},
		apitest.RunsPath: {"threadId": `"t"`, "runId": `"r"`, "messages": text, "resume": `[]`,
			"forwardedProps": `{"multitask_strategy":"enqueue"}`, "tools": `[]`, "context": `[]`, "state": `{}`, "protocolVersion": `"1.0"`},
	}
	values := []string{`null`, `true`, `7`, `-1.5e300`, `""`, `" "`, `"x"`, `"\u0000"`, `"\ud800"`, `[]`, `{}`, `[null]`, `[7]`, `["x"]`,
		`[{}]`, `[[]]`, `{"x":7}`,
		`[{"role":"user"}]`, `[{"role":7}]`, `[{"role":"user","content":[null],"parts":[null]}]`,
		`[{"role":"user","content":[{"type":"text","text":7}],"parts":[{"type":"text","text":7}]}]`,
		`[{"role":"assistant","parts":[{"state":"approval-responded","approval":null}]}]`,
		`[{"role":"assistant","parts":[{"state":"approval-responded","approval":{"id":"x","approved":"y"}}]}]`,
		`[{"interruptId":7,"status":"resolved"}]`, `[{"interruptId":"x","status":"resolved","payload":7}]`,
		`[{"interruptId":"x","status":"cancelled"}]`,
		`{"type":"json_schema"}`, `{"type":"json_schema","json_schema":{"schema":7}}`, `{"type":7}`, `{"include_usage":7}`}
	asked := 0
	for path, valid := range doors {
		for _, field := range slices.Sorted(maps.Keys(valid)) {
			for _, value := range values {
				fields := make(map[string]json.RawMessage)
				for name, v := range valid {
					fields[name] = json.RawMessage(v)
				}
				fields[field] = json.RawMessage(value)
				if path == apitest.RunsPath && field != "runId" {
					fields["runId"] = quoteRaw(field + value)
				}
				body, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				asked++
				res := s.Do(t, apitest.Call{Path: path, Body: string(body)})
				if res.StatusCode == 200 {
					res.Body.Close() // a turn, like any other
					continue
				}
				if r := apitest.ReadReply(res); r.Status >= 500 || r.Code == "" || r.Body["request_id"] == "" {
					t.Errorf("%s with %s = %s: %d %s", path, field, value, r.Status, r.Text)
				}
			}
		}
	}
	if asked < 500 {
		t.Errorf("only %d requests", asked)
	}
}

func quoteRaw(text string) json.RawMessage {
	if len(text) > 100 {
		text = text[:100]
	}
	raw, _ := json.Marshal(text)
	return raw
}
