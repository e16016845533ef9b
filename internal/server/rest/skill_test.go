package rest_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/skill"
)

// push activates a skill.
func (s *service) push(t testing.TB, document string) {
	t.Helper()
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID, skill.Upload{Document: document, By: "test"}); err != nil {
		t.Fatal(err)
	}
}

const report = `---
name: monthly-report
description: Writes the report of a month.
interface:
  inputs:
    month: {type: string, required: true, description: The month.}
    team: {type: enum, values: [sales, support], default: sales}
---
@say The report is ready.
`

func TestSkillIsCalledByAnyOfItsNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.push(t, report)
	const canary = "c4n4ry-m0nth"
	for _, name := range []string{"monthly-report", "Monthly_Report", "MONTHLY-REPORT"} {
		st := s.open(t, call{method: "POST", path: "messages", body: `{"skill":"` + name + `","input":{"month":"` + canary + `"}}`})
		frames := st.rest()
		if got := names(frames); got != "open text usage done" {
			t.Fatalf("%s: %s", name, got)
		}
		messages, _ := s.pages(t, "sessions/"+sessionOf(t, frames[0])+"/messages?limit=10")
		user := messages[0]
		if user.Label != "/monthly-report (month)" || *user.Content != user.Label || user.Skill != "monthly-report" ||
			*messages[1].Content != "The report is ready." {
			t.Errorf("%s: %+v", name, messages)
		}
	}
	var prompts int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns WHERE prompt IS NOT NULL`).Scan(&prompts); err != nil || prompts != 0 {
		t.Errorf("%d prompts outlive their turn, %v", prompts, err)
	}
}

func TestSkillsThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.push(t, report)
	r := s.get(t, call{method: "POST", path: "messages", body: `{"skill":"monthly_repot","input":{"month":"x"}}`})
	if r.status != 400 || r.Error.Code != "UNKNOWN_SKILL" || r.Error.Param != "skill" ||
		!strings.Contains(r.text, `"candidates":["monthly-report"]`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	r = s.get(t, call{method: "POST", path: "messages", body: `{"skill":"monthly-report","input":{"team":"legal","mnth":"s3cr3t"}}`})
	var got []string
	for _, v := range r.Error.Violations {
		got = append(got, v.Param+" "+v.Rule)
	}
	if r.status != 400 || r.Error.Code != "INVALID_SKILL_INPUT" || len(got) != 3 || strings.Contains(r.text, "s3cr3t") {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: "sessions"}); string(r.Data) != "[]" {
		t.Errorf("refused calls left %s", r.Data)
	}
	if got := names(s.say(t, "/monthly-report month=x").rest()); got != "open text usage done" {
		t.Errorf("a command that looks like a skill: %s", got)
	}
}
