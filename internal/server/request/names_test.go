package request_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// TestErrorsHaveTheCallersNames checks that an error uses the caller's field names and changes no
// other text.
func TestErrorsHaveTheCallersNames(t *testing.T) {
	t.Parallel()
	names := request.Names{"caller_id": "user", "command": "messages/3/content", "messages": "input", "Idempotency-Key": "runId"}
	var c request.Checks
	c.Message([]request.Member{{Name: "caller_id", Value: json.RawMessage(`7`)}, {Name: "command", Value: json.RawMessage(`" "`)},
		{Name: "caller_idea", Value: nil}},
		[]string{"caller_id", "command"})
	c.Add(fault.Violation{Param: "/messages/0/id", Message: "messages/0/id is not one of messages."})
	f := fault.From(names.TranslateError(fmt.Errorf("parse: %w", c.Err())))
	if f.Param != "user" || f.Message != "user must be a string. (and 3 more)" {
		t.Errorf("%s: %s", f.Param, f.Message)
	}
	want := []string{"/user: user must be a string.", "/messages/3/content: messages/3/content is empty.",
		`/caller_idea: Unknown field "caller_idea". Did you mean "caller_id"?`, "/input/0/id: input/0/id is not one of messages."}
	for i, v := range f.Detail.Violations {
		if got := v.Param + ": " + v.Message; got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
	key := &fault.Error{Code: fault.IdempotencyKeyReused, Param: "Idempotency-Key", Message: "This Idempotency-Key came with another request."}
	if f := fault.From(names.TranslateError(key)); f.Param != "runId" || f.Message != "This runId came with another request." {
		t.Errorf("%s: %s", f.Param, f.Message)
	}
	if err := names.TranslateError(nil); err != nil {
		t.Errorf("nothing became %v", err)
	}
}

func TestTypesAreSentences(t *testing.T) {
	t.Parallel()
	var c request.Checks
	for _, want := range []string{"array", "object", "integer", "string", "boolean", "number"} {
		c.Type("/x", want)
	}
	for i, article := range []string{"an array", "an object", "an integer", "a string", "a boolean", "a number"} {
		if got := fault.From(c.Err()).Detail.Violations[i].Message; got != "x must be "+article+"." {
			t.Errorf("%s", got)
		}
	}
}
