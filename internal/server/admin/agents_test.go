package admin_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

type agentReply struct {
	Name      string
	Default   bool
	Published int `json:"published_version"`
	Draft     bool
	Author    string
	Note      string
}

// TestAgentsAreAdministered takes a draft through its life: saved, compared, published and rolled
// back. Two administrators who read the same revision lose nothing.
func TestAgentsAreAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	var a agentReply
	made := s.must(t, "POST agents", `{"name":"support","instructions":"Help.","note":"First."}`, &a, "Idempotency-Key", "a1")
	again := s.must(t, "POST agents", `{"name":"support","instructions":"Help.","note":"First."}`, nil, "Idempotency-Key", "a1")
	if a.Published != 1 || a.Default || a.Author != "key:"+s.Key[4:12] || again.text != made.text {
		t.Errorf("created %s, again %s", made.text, again.text)
	}
	read := s.must(t, "GET agents/support", "", nil).header.Get("ETag")
	const draft = `{"instructions":"Help\nfast.","effort":"low","fallback_models":["openai/gpt-5-mini","vllm/llama"],` +
		`"tools":{"read":"read_only"},"rules":{"read":"ask"},"limits":{"max_turns":9,"max_cost_usd":0.5}}`
	saved := s.must(t, "PUT agents/support/draft", draft, nil, "If-Match", read)
	for _, late := range []string{"PUT agents/support/draft", "PUT agents/support", "POST agents/support/publish",
		"DELETE agents/support/draft", "DELETE agents/support"} {
		body := "{}"
		if strings.HasPrefix(late, "DELETE") {
			body = ""
		}
		s.refused(t, "PRECONDITION_FAILED", late, body, "If-Match", read)
		s.refused(t, "PRECONDITION_FAILED", late, body, "If-Match", `"x"`)
	}
	if got := s.must(t, "GET agents/support/draft", "", nil); got.text != saved.text || got.header.Get("ETag") != saved.header.Get("ETag") {
		t.Errorf("saved %s, read %s", saved.text, got.text)
	}
	var diff struct {
		From, To *int
		Lines    []struct{ Op, Text string }
	}
	if s.must(t, "GET agents/support/diff", "", &diff); diff.From == nil || diff.To != nil || len(diff.Lines) != 15 ||
		diff.Lines[12].Text != "Help." || diff.Lines[12].Op != "removed" || diff.Lines[14].Text != "fast." {
		t.Errorf("the difference is %+v", diff)
	}
	if s.must(t, "POST agents/support/publish", `{"note":"Faster."}`, &a, "If-Match", saved.header.Get("ETag")); a.Published != 2 ||
		a.Draft || a.Note != "Faster." {
		t.Errorf("published %+v", a)
	}
	if s.must(t, "POST agents/support/rollback", `{"version":1,"note":"Too fast."}`, &a); a.Published != 3 {
		t.Errorf("rolled back to %+v", a)
	}
	if s.must(t, "PUT agents/support", `{"instructions":"Help well."}`, &a); a.Published != 4 {
		t.Errorf("published %+v", a)
	}
	if text := s.must(t, "GET agents/support/versions/2", "", nil).text; !strings.Contains(text, `"history_tokens":null`) ||
		!strings.Contains(text, `"tools":{"read":"read_only"}`) || !strings.Contains(text, `"max_turns":9`) {
		t.Errorf("version 2 is %s", text)
	}
}

// TestAgentsOfOthersAndMistakes lists agents and versions in pages, and names each mistake.
func TestAgentsOfOthersAndMistakes(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"support", "analyst"} {
		s.must(t, "POST agents", `{"name":"`+name+`"}`, nil)
	}
	var names []string
	for path := "GET agents?limit=1"; path != ""; {
		var list []agentReply
		r := s.must(t, path, "", &list)
		if names, path = append(names, list[0].Name), ""; r.HasMore {
			path = "GET agents?limit=1&cursor=" + *r.NextCursor
		}
	}
	if got := strings.Join(names, " "); got != "default analyst support" {
		t.Errorf("the agents are %s", got)
	}
	s.must(t, "PUT agents/support", `{"instructions":"Two."}`, nil)
	var versions []struct{ Version int }
	first := s.must(t, "GET agents/support/versions?limit=1", "", &versions)
	if first.NextCursor == nil || versions[0].Version != 2 {
		t.Fatalf("the first page is %s", first.text)
	}
	if r := s.must(t, "GET agents/support/versions?limit=1&cursor="+*first.NextCursor, "", &versions); r.HasMore || versions[0].Version != 1 {
		t.Errorf("the second page is %s", r.text)
	}
	s.refused(t, "INVALID_CURSOR", "GET agents/support/versions?cursor=a2RlZmF1bHQ", "")
	for call, body := range map[string]string{
		"GET agents/none": "", "GET agents/support/versions/9": "", "GET agents/support/versions/x": "", "GET agents/support/draft": "",
		"GET agents/support/diff": "", "POST agents/support/publish": "{}", "POST agents/support/rollback": `{"version":7}`,
		"PUT agents/none/draft": "{}", "DELETE agents/none": "",
	} {
		s.refused(t, "OBJECT_NOT_FOUND", call, body)
	}
	for body, param := range map[string]string{
		`{"tools":{"bsh":"changes"}}`: "/tools/bsh", `{"tools":{"read":1}}`: "/tools/read", `{"rules":[]}`: "/rules",
		`{"limits":{"max_turns":0}}`: "/limits/max_turns",
		`{"limits":{"turns":1}}`:     "/limits/turns", `{"limits":{"history_tokens":2147483647}}`: "/limits/history_tokens",
		`{"limits":{"max_cost_usd":"1"}}`: "/limits/max_cost_usd", `{"effort":"huge"}`: "/effort",
		`{"fallback_models":["x"]}`: "/fallback_models/0", `{"fallback_models":["a/b","a/b"]}`: "/fallback_models/1",
		`{"fallback_models":"a/b"}`: "/fallback_models", `{"note":"x"}`: "/note",
	} {
		if r := s.refused(t, "INVALID_REQUEST", "PUT agents/support/draft", body); len(r.Error.Violations) == 0 ||
			r.Error.Violations[0].Param != param {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	s.refused(t, "INVALID_REQUEST", "DELETE agents/default", "")
	s.refused(t, "INVALID_REQUEST", "POST agents/support/rollback", "{}")
	reader := []string{"Authorization", "Bearer " + s.Issue(t, s.Workspace, apikey.ConfigRead)}
	s.must(t, "GET agents/support", "", nil, reader...)
	s.refused(t, "INSUFFICIENT_SCOPE", "PUT agents/support/draft", "{}", reader...)
	s.must(t, "DELETE agents/support", "", nil)
}
