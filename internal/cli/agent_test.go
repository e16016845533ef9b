package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgentIsEditedTriedAndPublished takes a draft through its life: saved with a flag and in an
// editor, compared, tried, published and rolled back.
func TestAgentIsEditedTriedAndPublished(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if _, errs, code := sh.run("agent", "publish"); code != 2 || !strings.Contains(errs, "has no draft") {
		t.Errorf("published without a draft: exit code %d, %s", code, errs)
	}
	sh.must("agent", "edit", "--instructions", "Be kind.", "--rule", "bash=deny", "--tool", "read,bash")
	editor := filepath.Join(sh.dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\necho 'Be quick.' >> \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	edited := sh
	edited.environ = append([]string{"VISUAL=" + editor}, sh.environ...)
	edited.must("agent", "edit")
	want := "-tools: null\n+tools: {\"bash\":\"changes\",\"read\":\"read_only\"}\n-rules: null\n+rules: {\"bash\":\"deny\"}\n+Be " +
		"kind.Be quick.\n"
	if out := sh.must("agent", "diff"); out != want {
		t.Errorf("the difference is %q, want %q", out, want)
	}
	if out := sh.must("send", "--agent-version", "draft", "@say Tried."); !strings.Contains(out, "Tried.") {
		t.Errorf("the draft answers %q", out)
	}
	sh.must("agent", "publish", "--note", "Faster.")
	sh.must("agent", "rollback", "--to", "1")
	if out := sh.must("agent", "show", "--history"); !strings.Contains(out, "Faster.") || strings.Count(out, "\n") != 4 {
		t.Errorf("the history is\n%s", out)
	}
	if out := sh.must("workspace", "show", "test", "--json"); strings.Contains(out, "Be kind.") {
		t.Errorf("after the rollback the workspace is %s", out)
	}
	sh.must("agent", "create", "support", "--instructions", "Help.")
	if out := sh.must("send", "--agent", "support", "@say Helped."); !strings.Contains(out, "Helped.") {
		t.Errorf("the agent support answers %q", out)
	}
	if _, errs, code := sh.run("send", "--agent", "suport", "hi"); code != 2 || !strings.Contains(errs, `Did you mean "support"?`) {
		t.Errorf("an unknown agent: exit code %d, %s", code, errs)
	}
	if _, errs, code := sh.run("agent", "delete", "default", "--yes"); code != 2 || !strings.Contains(errs, "cannot be deleted") {
		t.Errorf("deleted the default agent: exit code %d, %s", code, errs)
	}
	sh.must("agent", "delete", "support", "--yes")
	if out := sh.must("agent", "list", "--json"); strings.Contains(out, "support") || !strings.Contains(out, `"published_version": 3`) {
		t.Errorf("the agents are %s", out)
	}
}
