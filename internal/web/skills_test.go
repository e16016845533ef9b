package web

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/skill"
)

// hostileSkill is a SKILL.md with the corpus in every text that it can hold.
func hostileSkill() string {
	all := strings.Join(corpus, "\n")
	quoted := "'" + strings.ReplaceAll(strings.Join(corpus, " "), "'", "''") + "'"
	return "---\nname: hostile\ndescription: " + quoted + "\ninterface:\n  inputs:\n    month: {type: enum, values: ['" +
		strings.ReplaceAll(corpus[0], "'", "''") + "'], description: " + quoted + "}\n---\n\n" +
		"# Title <img src=x onerror=hacked=1>\n\n" + all + "\n\n[link](javascript:hacked=1) ![image](data:text/html,x) " +
		"<javascript:hacked=1> [wiki](release.md)\n\n| a |\n|---|\n| <svg onload=hacked=1> |\n\n```html\n" + all + "\n```\n"
}

// TestSkillsAreEdited creates a skill, edits it with a look at the difference, publishes, rolls back,
// runs and archives it. A change of another administrator is not overwritten, and no text of a skill
// becomes markup.
func TestSkillsAreEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Berg"}, apikey.Editor)
	address := w.URL + "/w/demo/skills"
	p.Go(address)
	p.See("h2", "No skills yet")
	p.Press("a.btn", "New skill")
	document := func(text string) {
		p.MustElement("#f-document").MustEval(`function (text) { this.value = text; }`, text)
	}
	document("---\nname: <b>no</b>\n---\n")
	p.Press("button", "Review changes")
	p.See(".err", "Line 2")
	const first = "---\nname: monthly_report\ndescription: Drafts a report for one month.\ninterface:\n  inputs:\n    month: {type: " +
		"string, format: month, required: true, description: The month to report on.}\n" +
		"    team: {type: enum, values: [sales, support], default: sales}\n---\n\n# Monthly report\n\n@say First.\n\n1. " +
		"Read `release-process`.\n2. Write **three** sentences.\n"
	document(first)
	p.Press("button", "Review changes")
	p.See(".diff", "Monthly report")
	p.Press("button", "Continue editing")
	p.Review("skill-edit")
	p.Press("button", "Review changes")
	p.Press("button.primary", "Publish")
	p.See(".note", "Version 1 published")
	p.See(".prose strong", "three")

	p.Press("a.btn", "Edit")
	document(strings.Replace(first, "First.", "Second.", 1))
	p.Press("button", "Review changes")
	p.See(".diff ins", "Second")
	p.Shot("skill-review")
	other := strings.Replace(first, "First.", "Other.", 1)
	if _, err := w.Skills.Push(t.Context(), w.Workspace.ID, skill.Upload{Document: other, Draft: true, By: "cli:anna"}); err != nil {
		t.Fatal(err)
	}
	p.Press("button", "Save without publishing")
	p.See(".note.bad", "newest version of monthly_report is 2")
	if text := p.MustElement("#f-document").MustProperty("value").Str(); !strings.Contains(text, "Second.") {
		t.Errorf("the text of the form is lost: %q", text)
	}
	active := func(want int) {
		t.Helper()
		if got, err := w.Skills.Active(t.Context(), w.Workspace.ID, "monthly_report"); err != nil || got.Version != want {
			t.Errorf("version %d runs, %v; want %d", got.Version, err, want)
		}
	}
	active(1)
	p.Go(address + "/monthly_report?version=2")
	p.See(".diff ins", "Other")
	p.Press("button.primary", "Publish v2")
	active(2)
	w.say(t, "", `"skill":"monthly_report","input":{"month":"2026-10"}`)
	p.Go(address + "/monthly_report")
	p.See(".vers li", "1 run in 30 d")
	p.Review("skill")
	p.Press(".vers a", "v1")
	p.Press("button.primary", "Publish v1")
	active(1)

	if _, err := w.Skills.Push(t.Context(), w.Workspace.ID, skill.Upload{Document: hostileSkill(), Draft: true,
		By: "<img src=x onerror=hacked=1>"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/hostile", "/hostile?source=1", "/hostile?edit=1"} {
		p.Go(address + path)
		p.See("body", "hostile")
		unhurt(t, p)
	}
	p.Go(address)
	p.Review("skills")
	p.Press("td a", "monthly_report")
	p.Press("a.btn", "Test")
	p.See("#p-skill legend", "monthly_report")
	p.Go(address + "/monthly_report")
	p.Press("a.danger", "Archive")
	p.Press("button.fill", "Archive skill")
	p.See(".note", "Skill archived")
	p.Go(address + "/absent")
	p.See("h1", "Page not found")
	viewer := w.signIn(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	viewer.Go(address + "/monthly_report?edit=1")
	viewer.See("h2", "Versions")
	if n := len(viewer.MustElements("main .btn:not([data-copy]), header .primary")); n != 0 {
		t.Errorf("a viewer has %d buttons", n)
	}
}
