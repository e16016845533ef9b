package permission_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-server/parley/internal/store/permission"
)

// TestInputThatReadersReadDifferentlyMatchesNothing: encoding/json takes the last of two members,
// and any case of their names.
func TestInputThatReadersReadDifferentlyMatchesNothing(t *testing.T) {
	t.Parallel()
	p := must(t, "bash(git status)")
	if !p.Matches("bash", json.RawMessage(` {"timeout_seconds":3, "command" : "git \u0073tatus"} `)) {
		t.Error("a plain call is not covered")
	}
	for _, input := range []string{
		``, `null`, `"git status"`, `["git status"]`, `{`, `{}`, `{"command":null}`, `{"command":["git status"]}`, `{"command":7}`,
		`{"command":"git status","command":"evil"}`, `{"command":"git status","Command":"evil"}`, `{"COMMAND":"git status"}`,
		`{"command":"git status","cwd":"/"}`, `{"command":"git status"}{"command":"evil"}`, `{"command":"git status"} x`,
		`{"command":"git status\ud800"}`, "{\"command\":\"git status\xff\"}", `{"command":"git status\u0000"}`,
	} {
		if p.Matches("bash", json.RawMessage(input)) {
			t.Errorf("%s is covered", input)
		}
	}
	if p.Matches("write", bash("git status")) || (permission.Pattern{}).Matches("bash", bash("git status")) ||
		(permission.Pattern{}).Matches("", nil) {
		t.Error("a pattern covers another tool")
	}
}
