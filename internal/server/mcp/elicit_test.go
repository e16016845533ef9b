package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// asks is a call's request for input, and its result if it asks nothing.
type asks struct {
	ResultType string `json:"resultType"`
	State      string `json:"requestState"`
	Requests   map[string]struct {
		Method string
		Params struct{ Message string }
	} `json:"inputRequests"`
	Content []struct{ Text string }
	IsError bool `json:"isError"`
	Told    told `json:"structuredContent"`
}

// question returns the name of the only question.
func (a asks) question() string {
	for name := range a.Requests {
		return name
	}
	return ""
}

// retry calls send_message as a client that supports forms. extra are additional parameters.
func (s *service) retry(t testing.TB, key, command, extra string) (asks, response) {
	t.Helper()
	r := s.post(t, key, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"command":%q},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}%s}}`, command, extra),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "send_message")
	got := r.only(t)
	var a asks
	if got.Error == nil {
		if err := json.Unmarshal(got.Result, &a); err != nil {
			t.Fatalf("%s: %v", r.body, err)
		}
	}
	return a, got
}

// back returns the parameters that contain an answer.
func back(state, question, response string) string {
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}`, state, question, response)
}

func (s *service) turns(t testing.TB) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAQuestionWithoutAnAnswerIsAskedAgain checks answers that are missing or do not fit the form:
// the question is asked again at once, and nothing is decided.
func TestAQuestionWithoutAnAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := workspace.Change{MessagesPerMinute: new(1)}
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, c); err != nil {
		t.Fatal(err)
	}
	key := s.Issue(t, s.Workspace, apikey.MCP)
	first, _ := s.retry(t, key, asking, "")
	id := first.question()
	if _, raw := s.retry(t, key, asking, `,"requestState":"`+first.State+`"`); strings.Contains(string(raw.Result), "null") {
		t.Errorf("a member is empty: %s", raw.Result)
	}
	if first.ResultType != "input_required" || first.State == "" || first.Requests[id].Method != "elicitation/create" {
		t.Fatalf("%+v", first)
	}
	for name, extra := range map[string]string{
		"nothing":             `,"requestState":"` + first.State + `"`,
		"no answers":          `,"requestState":"` + first.State + `","inputResponses":{}`,
		"an unknown question": back(first.State, "other", `{"action":"accept","content":{"decision":"allow"}}`),
		"an unknown id": back(first.State, "0190a7c0-0000-7000-8000-000000000000",
			`{"action":"accept","content":{"decision":"allow"}}`),
		"nonsense for a stranger": back(first.State, "other", `3`),
	} {
		again, got := s.retry(t, key, asking, extra)
		if again.ResultType != "input_required" || again.question() != id || again.State != first.State {
			t.Errorf("%s: %+v %+v", name, again, got)
		}
	}
	for field, answer := range map[string]string{
		"must be an object":                                 `"allow"`,
		"/action must be a string":                          `{}`,
		"/action must be one of accept, decline, cancel":    `{"action":"allow"}`,
		"/content must be an object":                        `{"action":"accept","content":"allow"}`,
		"/content/decision must be a string":                `{"action":"accept","content":{}}`,
		"/content/decision must be a string, not Decision":  `{"action":"accept","content":{"Decision":"allow"}}`,
		"/content/decision must be one of allow, deny":      `{"action":"accept","content":{"decision":"perhaps"}}`,
		"/content/reason must be a string":                  `{"action":"accept","content":{"decision":"deny","reason":3}}`,
		"/content/reason comes only with the decision deny": `{"action":"accept","content":{"decision":"allow","reason":"only if it is small"}}`,
		"/content/reason has more than 500 characters": `{"action":"accept","content":{"decision":"deny","reason":"` +
			strings.Repeat("é", 501) + `"}}`,
	} {
		_, got := s.retry(t, key, asking, back(first.State, id, answer))
		if got.Error == nil || got.Error.Code != -32602 || !strings.Contains(got.Error.Message, "inputResponses/"+id) ||
			!strings.Contains(got.Error.Message, strings.TrimSuffix(field, ", not Decision")) {
			t.Errorf("%s: %+v %s", answer, got.Error, got.Result)
		}
	}
	if _, got := s.retry(t, key, asking, `,"inputResponses":{"`+id+
		`":{"action":"accept","content":{"decision":"allow"}}}`); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("an answer without its state: %+v %s", got.Error, got.Result)
	}
	if n := s.turns(t); n != 1 {
		t.Errorf("%d turns", n)
	}
	end, got := s.retry(t, key, asking, back(first.State, id, `{"action":"accept","content":{"decision":"allow","reason":" ","more":1}}`))
	if !end.Told.Success || end.Told.Notice != "" {
		t.Errorf("%+v %+v", end, got)
	}
}

// TestAQuestionThatIsPutAsideStaysOpen checks that a dismissed question stays open, and that the
// result explains how to answer it.
func TestAQuestionThatIsPutAsideStaysOpen(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first, _ := s.retry(t, s.key, asking, "")
	end, _ := s.retry(t, s.key, asking, back(first.State, first.question(), `{"action":"cancel"}`))
	if end.ResultType != "complete" || end.IsError || end.Told.Input == nil || !strings.Contains(end.Told.Notice, "stays open") ||
		!strings.Contains(end.Content[0].Text, "decide_approval answers it") {
		t.Fatalf("%+v", end)
	}
	c := s.connect(t, s.key, nil)
	if d := c.call("decide_approval", map[string]any{"approval_id": end.Told.Input.ApprovalID, "decision": "allow",
		"wait": true}); d.Status != "allowed" || !strings.Contains(d.text, "It is done.") {
		t.Errorf("%s", d.raw)
	}
}

// TestAnAnswerThatCameTooLateSaysSo checks that a client that declines a call that was already
// allowed is informed that the call was allowed.
func TestAnAnswerThatCameTooLateSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.connect(t, s.key, nil)
	for answer, want := range map[string]string{
		`{"action":"decline"}`:                               "answered before: allowed",
		`{"action":"accept","content":{"decision":"deny"}}`:  "answered before: allowed",
		`{"action":"accept","content":{"decision":"allow"}}`: "",
		`{"action":"cancel"}`:                                "",
	} {
		first, _ := s.retry(t, s.key, asking, "")
		c.call("decide_approval", map[string]any{"approval_id": first.question(), "decision": "allow"})
		end, got := s.retry(t, s.key, asking, back(first.State, first.question(), answer))
		if !end.Told.Success || !strings.Contains(end.Told.Notice, want) || (want == "") != (end.Told.Notice == "") ||
			!strings.HasPrefix(end.Content[0].Text, end.Told.Notice) {
			t.Errorf("%s: %+v %+v", answer, end, got)
		}
	}
}

// TestAnAnswerAfterItsTimeSaysSo checks that an answer to an expired approval is reported as late,
// not as answered before.
func TestAnAnswerAfterItsTimeSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first, _ := s.retry(t, s.key, asking, "")
	if _, err := s.Pool.Exec(t.Context(),
		`UPDATE approvals SET created_at = created_at - interval '1 hour', expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	end, got := s.retry(t, s.key, asking, back(first.State, first.question(), `{"action":"accept","content":{"decision":"allow"}}`))
	if !strings.Contains(end.Told.Notice, "The approval expired at ") || strings.Contains(end.Told.Notice, "answered before") {
		t.Errorf("%+v %s", end, got.Result)
	}
}

// TestAStateThatCameWithNoQuestionIsRefused checks that an unknown request state is rejected in the
// terms of this protocol.
func TestAStateThatCameWithNoQuestionIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first, _ := s.retry(t, s.key, asking, "")
	for command, state := range map[string]string{"@say another message": first.State, asking: "x1"} {
		end, _ := s.retry(t, s.key, command, back(state, first.question(), `{"action":"decline"}`))
		if !end.IsError || end.Told.Fault == nil || end.Told.Fault.Code != "INVALID_CURSOR" || !strings.Contains(end.Content[0].Text,
			"requestState") || strings.Contains(end.Content[0].Text, "Last-Event-ID") {
			t.Errorf("%+v", end)
		}
	}
	if n := s.turns(t); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// TestCapabilitiesAreReadByTheirExactNames checks that a client that misspells elicitation has not
// declared it, whatever the value is, so the question is in the result.
func TestCapabilitiesAreReadByTheirExactNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, capabilities := range []string{`{"Elicitation":{}}`, `{"Elicitation":7}`} {
		r := s.post(t, s.key,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"command":%q},
			"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, asking,
				capabilities),
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "send_message")
		var a asks
		if got := r.only(t); got.Error != nil || json.Unmarshal(got.Result, &a) != nil || a.ResultType != "complete" || a.Told.Input == nil {
			t.Errorf("%s: %s", capabilities, r.body)
		}
	}
}
