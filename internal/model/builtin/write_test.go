package builtin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

func TestGuideWritesWikiPages(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for _, c := range []struct{ message, says, page, content string }{
		{"Save “Trains first.” to the wiki page travel", `Done. The wiki page "travel" is written; it is at version 1.`, "travel",
			"Trains first."},
		{"write Trains second to the wiki page travel!", `at version 2.`, "travel", "Trains second"},
		{"Please update the wiki page travel: Trains third:\n\n- no planes", `at version 3.`, "travel", "Trains third:\n\n- no planes"},
		{"create a wiki page called handbook/food: Eat.", `"handbook/food" is written; it is at version 1.`, "handbook/food", "Eat."},
		{"Put 'a: b' in the wiki page colons", `"colons" is written`, "colons", "a: b"},
		{"Ask me for approval", "The call went through.", "approval-demo",
			"# Approval demo\n\nThe built-in guide wrote this page to show an approval.\n"},
		{"please ask for my permission", "The call went through. The wiki page \"approval-demo\" is written; it is at version 1.",
			"approval-demo", ""},
	} {
		answer, _ := o.talk(t, c.message)
		if !strings.Contains(answer, c.says) {
			t.Errorf("%q: %q", c.message, answer)
		}
		res, err := o.tools["wiki_read"].Call(t.Context(), tool.Call{Workspace: o.workspace, Input: []byte(`{"page":"` + c.page + `"}`)})
		if err != nil || c.content != "" && res.Output != c.content {
			t.Errorf("%q wrote %q, %v", c.message, res.Output, err)
		}
	}
	for _, message := range []string{"Write a poem about desks", "How do I ask for approval?", "Summarise the wiki page onboarding"} {
		if answer, _ := o.talk(t, message); strings.Contains(answer, "is written") {
			t.Errorf("%q: %q", message, answer)
		}
	}
}

// TestGuideSaysWhatItIsGoingToWrite: approvers read the text before the call.
func TestGuideSaysWhatItIsGoingToWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		req := user("Save Trains first. to the wiki page travel")
		req.Tools = append([]model.Tool{{Name: "wiki_write"}}, offered...)
		read := generate(t.Context(), g, req)
		if diff := cmp.Diff([]string{`wiki_read {"page":"travel","version":true}`}, names(read.Calls)); diff != "" {
			t.Error(diff)
		}
		for output, want := range map[string][2]string{
			"[version 3]\nPlanes first.": {"I am going to replace version 3 of the wiki page travel.",
				`wiki_write {"content":"Trains first.","expected_version":3,"page":"travel"}`},
			"Planes first.": {"I am going to make the wiki page travel.", `wiki_write {"content":"Trains first.","page":"travel"}`},
		} {
			then := answered(req, read, output)
			plan := generate(t.Context(), g, then)
			if diff := cmp.Diff([]string{want[1]}, names(plan.Calls)); diff != "" || strings.TrimSpace(plan.text()) != want[0] {
				t.Errorf("%q: %s", plan.text(), diff)
			}
			denied := generate(t.Context(), g, settled(then, plan, []tool.Result{tool.Reject("Denied: not today.\nAnd more.")}))
			if denied.text() != "Nothing was written. Denied: not today." {
				t.Errorf("after a denial: %q", denied.text())
			}
		}
		req.Tools = offered
		if s := generate(t.Context(), g, req); !strings.Contains(s.text(), "gives me no wiki_write tool") {
			t.Errorf("without the tool: %q", s.text())
		}
	})
}
