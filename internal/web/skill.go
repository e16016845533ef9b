package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/web/docsite"
)

// skillVersion is a version in the history of a skill.
type skillVersion struct {
	Number int
	By     string
	At     time.Time
	Use    skillUse
}

// skillView is a version of a skill.
type skillView struct {
	Shown    skill.Version
	Newest   int
	Active   int // number of the version that runs; 0: none
	HTML     template.HTML
	Source   bool // shows SKILL.md as it is written
	Inputs   []skill.Input
	Versions []skillVersion // newest first
	Older    string
	From     int // Diff begins with it; 0: there is one version alone
	Others   []int
	Diff     textDiff
	Use      skillUse
	Archive  bool // asks before the skill is archived
}

// Tone is the class of the status.
func (v skillView) Tone() string { return skillTone(v.Shown.Status) }

func (a *App) skillPage(w http.ResponseWriter, p *page) error {
	q := p.URL.Query()
	number, _ := strconv.Atoi(q.Get("version"))
	shown, err := a.findSkill(p, max(0, number))
	if err != nil {
		return err
	}
	if q.Get("edit") == "1" && p.Can("config:write") {
		newest, err := a.findSkill(p, 0)
		if err != nil {
			return err
		}
		return a.showSkillEditor(w, p, http.StatusOK, skillEditor{Name: shown.Name,
			Form: emptyForm("document", shown.Document, "expected", strconv.Itoa(newest.Version))})
	}
	view := skillView{Shown: shown, Source: q.Get("source") == "1", Archive: q.Get("archive") == "1" && shown.Status == skill.Active &&
		p.Can("config:write")}
	if shown.Contract != nil {
		view.Inputs = shown.Contract.Inputs
	}
	if view.HTML, err = docsite.Untrusted(shown.Body, nil); err != nil {
		return err
	}
	if err := a.readSkillHistory(p, &view); err != nil {
		return err
	}
	if number == 0 && view.Active > 0 && view.Active != shown.Version { // the page shows what runs
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/skills/"+url.PathEscape(shown.Name)+"?version="+strconv.Itoa(view.Active))
	}
	return a.render(w, p, "skill", view)
}

// findSkill returns a version of the skill in the path; 0 is the newest.
func (a *App) findSkill(p *page, version int) (skill.Version, error) {
	v, err := a.srv.Skills.Get(p.Context(), p.Workspace.ID, p.PathValue("skill"), version)
	if f := fault.From(err); f != nil && f.Code.Status() < 500 {
		return v, &fault.Error{Code: fault.RouteNotFound, Message: f.Message}
	}
	return v, err
}

// readSkillHistory reads the versions of a skill with their use, and the difference of two.
func (a *App) readSkillHistory(p *page, view *skillView) error {
	changes, err := a.srv.Skills.History(p.Context(), p.Workspace.ID, view.Shown.Name)
	if err != nil {
		return err
	}
	uses, err := a.srv.Sessions.SkillUses(p.Context(), p.Workspace.ID, time.Now().AddDate(0, 0, -skillDays))
	if err != nil {
		return err
	}
	fold, _ := skill.Fold(view.Shown.Name)
	var all []skillVersion
	for _, c := range changes {
		switch {
		case c.Action == "archive":
			view.Active = 0
		case c.Action == "publish" && c.Version != nil:
			view.Active = *c.Version
		case c.Version != nil:
			all = append(all, skillVersion{Number: *c.Version, By: c.Actor, At: c.At})
		}
	}
	for _, use := range uses {
		name, _ := skill.Fold(use.Skill)
		if name != fold {
			continue
		}
		view.Use.add(use)
		if i := slices.IndexFunc(all, func(v skillVersion) bool { return v.Number == int(use.Version) }); i >= 0 {
			all[i].Use.add(use)
		}
	}
	slices.Reverse(all)
	return a.pageSkillHistory(p, view, all)
}

// pageSkillHistory chooses the versions on the page and the one that the shown version is compared
// with: the one before it, unless the address names another.
func (a *App) pageSkillHistory(p *page, view *skillView, all []skillVersion) error {
	q := p.URL.Query()
	before, _ := strconv.Atoi(q.Get("before"))
	view.From, _ = strconv.Atoi(q.Get("from"))
	for _, v := range all {
		view.Newest = max(view.Newest, v.Number)
		if v.Number == view.Shown.Version {
			continue
		}
		if view.Others = append(view.Others, v.Number); view.From == 0 && v.Number < view.Shown.Version {
			view.From = v.Number
		}
	}
	if before > 0 {
		all = slices.DeleteFunc(all, func(v skillVersion) bool { return v.Number >= before })
	}
	if len(all) > versionsOnPage {
		older := without(q, "before")
		older.Set("before", strconv.Itoa(all[versionsOnPage-1].Number))
		all, view.Older = all[:versionsOnPage], "?"+older.Encode()
	}
	view.Versions = all
	if view.From == 0 {
		return nil
	}
	from, err := a.findSkill(p, view.From)
	view.Diff = diffDocuments(skill.File, from.Document, view.Shown.Document)
	return err
}

// diffDocuments returns the lines of two texts that differ, with the name of the file.
func diffDocuments(name, before, after string) (d textDiff) {
	d.add(name, agent.Diff(agent.Definition{Instructions: before}, agent.Definition{Instructions: after}), true)
	return d
}

// changeSkill serves the forms of a skill's page.
func (a *App) changeSkill(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	by, address := p.Visitor.Name, "/w/"+p.Workspace.Slug+"/skills/"+url.PathEscape(p.PathValue("skill"))
	switch f.Value("do") {
	case "publish":
		number, err := strconv.Atoi(f.Value("version"))
		if err != nil || number < 1 {
			return unknownForm()
		}
		done, err := a.srv.Skills.Publish(p.Context(), p.Workspace.ID, p.PathValue("skill"), number, by)
		if err != nil {
			return err
		}
		p.flash(w, fmt.Sprintf("Version %d of %s published. It runs from the next message on.", done.Version, done.Name))
	case "archive":
		if err := a.srv.Skills.Archive(p.Context(), p.Workspace.ID, p.PathValue("skill"), by); err != nil {
			return err
		}
		p.flash(w, "Skill archived. Publish a version to use it again.")
	default:
		return a.editSkill(w, p, f)
	}
	return p.redirect(w, address)
}

// Link returns the address of a version, as a query.
func (v skillView) Link(version int) string { return "?version=" + strconv.Itoa(version) }

// inputRules describes what a value of an input must be, besides its type.
func inputRules(in skill.Input) string {
	var rules []string
	if in.Format != "" {
		rules = append(rules, in.Format)
	}
	if len(in.Values) > 0 {
		rules = append(rules, strings.Join(in.Values, ", "))
	}
	if in.Items != nil {
		rules = append(rules, "of "+string(in.Items.Type))
	}
	if len(in.Default) > 0 {
		rules = append(rules, "default "+string(in.Default))
	}
	return strings.Join(rules, "; ")
}
