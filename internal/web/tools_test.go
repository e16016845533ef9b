package web

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
)

// withKnowledge gives the agents of a world the tools that read and write documents.
func withKnowledge(s *apitest.Service) []tool.Tool { return knowledge.Tools(s.Wiki, nil) }

// choose selects an option of a list by its text.
func choose(t *testing.T, p *browser.Page, selector, text string) {
	t.Helper()
	if err := p.MustElement(selector).Select([]string{text}, true, "text"); err != nil {
		t.Fatalf("select %q in %s: %v", text, selector, err)
	}
}

// TestToolsAreRuled counts calls of tools and changes rules. The rules of an agent's version are
// shown, a fixed rule cannot be changed, and the calls of another workspace are not counted.
func TestToolsAreRuled(t *testing.T) {
	t.Parallel()
	w := serveWorld(t, apitest.New(t, apitest.Options{Tools: withKnowledge}))
	if _, err := w.Wiki.Put(t.Context(), w.Workspace.ID, "wiki/onboarding.md", "# Onboarding\n\nBring a laptop.\n"); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"onboarding", "missing"} {
		w.say(t, `@call wiki_read {"page":"`+page+`"}`, "")
	}
	edit := agent.Edit{Workspace: w.Workspace.ID, Name: "support", Author: "cli:anna"}
	d := agent.Defaults()
	d.Rules = map[string]string{"write": "deny"}
	if _, err := w.app.srv.Agents.Create(t.Context(), edit, d, ""); err != nil {
		t.Fatal(err)
	}
	p := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Berg"}, apikey.Editor)
	p.Go(w.URL + "/w/demo/tools")
	row := p.See("tr", "wiki_read").MustText()
	if fields := strings.Fields(row); !strings.Contains(row, "reads") || !strings.Contains(row, "built in") ||
		!strings.Contains(strings.Join(fields, " "), " 2 1 ") || strings.Contains(row, "–") {
		t.Errorf("the row of wiki_read is %q", row)
	}
	p.See("tr", "support: deny")
	rule := func() string {
		t.Helper()
		list, err := w.app.Permissions.Settings(t.Context(), w.Workspace.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range list {
			if set.Tool == "bash" && set.Rule != nil {
				return set.Rule.String()
			}
		}
		return ""
	}
	choose(t, p, "select[aria-label='Rule of bash']", "Deny")
	p.Press("button[aria-label='Save the rule of bash']", "Save")
	p.See(".note", "Calls of bash are denied")
	if got := rule(); got != permission.Deny.String() {
		t.Errorf("the rule of bash is %q", got)
	}
	choose(t, p, "select[aria-label='Rule of bash']", "Built-in rule")
	p.Press("button[aria-label='Save the rule of bash']", "Save")
	if got := rule(); got != "" {
		t.Errorf("the rule of bash is still %q", got)
	}
	for _, form := range []string{"tool=request_secret&rule=allow", "tool=bash&rule=perhaps", "tool=absent&rule=ask"} {
		if status := w.post(t, p, "/w/demo/tools", form); status < 400 || status >= 500 {
			t.Errorf("%s: %d", form, status)
		}
	}
	other, _ := w.Another(t)
	if list, err := w.Sessions.ToolUses(t.Context(), other.ID, w.Workspace.CreatedAt); err != nil || len(list) != 0 {
		t.Errorf("another workspace has used %+v, %v", list, err)
	}
}
