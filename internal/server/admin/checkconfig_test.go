package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

// TestConfigurationIsCheckedWithoutAChange checks a list in which changes depend on each other, fail,
// need another scope or are none: each has its own result, and nothing changes.
func TestConfigurationIsCheckedWithoutAChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	changes := []struct{ change, code string }{
		{`{"method":"POST","path":"/agents","body":{"name":"support"}}`, ""},
		{`{"method":"PUT","path":"/agents/support","body":{"instructions":"Be kind."}}`, ""}, // after the first
		{`{"method":"POST","path":"/agents","body":{"name":"support"}}`, "INVALID_REQUEST"},
		{`{"method":"PUT","path":"/tools/b%61sh/rule","body":{"rule":"deny"}}`, ""},
		{`{"method":"PUT","path":"/tools/bsh/rule","body":{"rule":"deny"}}`, "OBJECT_NOT_FOUND"},
		{`{"method":"PUT","path":"/documents/content?path=wiki%2Fa.md","body":{"content":"# A"}}`, ""},
		{`{"method":"PUT","path":"/documents/content?path=..","body":{"content":"x"}}`, "INVALID_REQUEST"},
		{`{"method":"PATCH","path":"","body":{"name":"Other"}}`, "INSUFFICIENT_SCOPE"},
		{`{"method":"POST","path":"/keys","body":{"name":"k","scopes":["chat"]}}`, "NOT_FOUND"},
		{`{"method":"PUT","path":"/tools/bash/rule","body":{"rule":"deny","x":1}}`, "INVALID_REQUEST"},
		{`{"method":"PUT","path":"/tools/bash/rule"}`, "INVALID_JSON"},
		{`{"method":"PUT","path":"/egress","body":{"public":false,"hosts":["a.example"]}}`, ""},
	}
	list, want := make([]string, len(changes)), ""
	for i, c := range changes {
		list[i] = c.change
		if c.code != "" {
			want += fmt.Sprintf("%d %s\n", i, c.code)
		}
	}
	count := func() (n int) {
		if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM admin_log`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.Key = s.Issue(t, s.Workspace, apikey.ConfigWrite, apikey.ToolsRead)
	before := count()
	var found struct {
		Checked  int
		Rejected []struct {
			Change int
			Error  struct{ Code, Message string }
		}
	}
	s.must(t, "POST config/check", `{"changes":[`+strings.Join(list, ",")+`]}`, &found)
	got := ""
	for _, r := range found.Rejected {
		got += fmt.Sprintf("%d %s\n", r.Change, r.Error.Code)
		if r.Error.Message == "" {
			t.Errorf("change %d has no message", r.Change)
		}
	}
	if got != want || found.Checked != len(changes) || count() != before {
		t.Errorf("%d checked, %d changes; rejected:\n%swant:\n%s", found.Checked, count()-before, got, want)
	}
	for _, wrong := range []string{`{}`, `{"changes":{}}`, `{"changes":[{"verb":"PUT"}]}`} {
		s.refused(t, "INVALID_REQUEST", "POST config/check", wrong)
	}
}
