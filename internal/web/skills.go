package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/text"
)

const (
	skillDays    = 30
	skillsOnPage = 50
)

// skillUse is the use of a skill, or of one of its versions.
type skillUse struct {
	Turns, Failed int
	Last          *time.Time
}

func (u *skillUse) add(row session.SkillUse) {
	u.Turns += int(row.Turns)
	u.Failed += int(row.Failed)
	if u.Last == nil || row.Last.After(*u.Last) {
		u.Last = &row.Last
	}
}

// skillRow is a skill in the list.
type skillRow struct {
	skill.Entry
	Use skillUse
}

// skillsView is the list of skills.
type skillsView struct {
	List  []skillRow
	Total int
	First string // address of the first page; "": this is it
	Older string // address of the next page
}

// skillTone is the class of a skill's status.
func skillTone(s skill.Status) string {
	return map[skill.Status]string{skill.Active: "ok", skill.Draft: "warn"}[s]
}

// Summary is the begin of the description.
func (r skillRow) Summary() string { return text.Truncate(r.Description, 160) }

// Tone is the class of the status.
func (r skillRow) Tone() string { return skillTone(r.Status) }

func (a *App) skillsPage(w http.ResponseWriter, p *page) error {
	if p.URL.Query().Get("new") == "1" && p.Can("config:write") {
		return a.showSkillEditor(w, p, http.StatusOK, skillEditor{Form: emptyForm("document", skill.Template("my_skill"))})
	}
	list, err := a.srv.Skills.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	uses, err := a.srv.Sessions.SkillUses(p.Context(), p.Workspace.ID, time.Now().AddDate(0, 0, -skillDays))
	if err != nil {
		return err
	}
	view := skillsView{Total: len(list)}
	after := p.URL.Query().Get("after")
	if after != "" {
		view.First = "?"
	}
	for _, e := range list {
		fold, _ := skill.Fold(e.Name)
		if fold <= after {
			continue
		}
		if n := len(view.List); n == skillsOnPage {
			last, _ := skill.Fold(view.List[n-1].Name)
			view.Older = "?after=" + url.QueryEscape(last)
			break
		}
		row := skillRow{Entry: e}
		for _, use := range uses {
			if name, _ := skill.Fold(use.Skill); name == fold {
				row.Use.add(use)
			}
		}
		view.List = append(view.List, row)
	}
	return a.render(w, p, "skills", view)
}
