package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/skill"
)

// skillEditor is the editor of a SKILL.md. A document is stored after its difference from the newest
// version was shown.
type skillEditor struct {
	Name   string // "": a new skill
	Form   *form
	Review bool // shows Diff in place of the text
	Diff   textDiff
}

func (a *App) showSkillEditor(w http.ResponseWriter, p *page, status int, view skillEditor) error {
	return a.renderStatus(w, p, status, "skill-edit", view)
}

// createSkill serves the form of a new skill.
func (a *App) createSkill(w http.ResponseWriter, p *page) error {
	return a.editSkill(w, p, newForm(p))
}

// editSkill serves the editor: back, review, save or publish.
func (a *App) editSkill(w http.ResponseWriter, p *page, f *form) error {
	document := strings.ReplaceAll(f.Value("document"), "\r\n", "\n")
	f.Values.Set("document", document)
	view := skillEditor{Form: f}
	expected, before := 0, ""
	if p.PathValue("skill") != "" {
		newest, err := a.findSkill(p, 0)
		if err != nil {
			return err
		}
		if view.Name, before = newest.Name, newest.Document; f.Value("expected") == "" {
			return unknownForm()
		}
		if expected, err = strconv.Atoi(f.Value("expected")); err != nil {
			return unknownForm()
		}
	}
	name := checkDocument(f, view.Name, document)
	do := f.Value("do")
	switch {
	case do == "back":
		f.errs, f.list = nil, nil
		return a.showSkillEditor(w, p, http.StatusOK, view)
	case f.Failed():
		return a.showSkillEditor(w, p, http.StatusUnprocessableEntity, view)
	case do == "review":
		view.Review, view.Diff = true, diffDocuments(skill.File, before, document)
		return a.showSkillEditor(w, p, http.StatusOK, view)
	case do != "save" && do != "publish":
		return unknownForm()
	}
	pushed, err := a.srv.Skills.Push(p.Context(), p.Workspace.ID, skill.Upload{Document: document, Draft: do == "save", By: p.Visitor.Name,
		Expected: &expected})
	if err != nil {
		if err := f.take(err, "document"); err != nil {
			return err
		}
		if problem := fault.From(err); view.Name == "" && problem.Code == fault.PreconditionFailed {
			f.Note = "There is a skill " + name + " already. Open it to change it, or choose another name."
		}
		return a.showSkillEditor(w, p, http.StatusUnprocessableEntity, view)
	}
	p.flash(w, pushedText(pushed, do == "save"))
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/skills/"+url.PathEscape(pushed.Name)+"?version="+strconv.Itoa(pushed.Version))
}

// checkDocument adds the problems of a SKILL.md to the form and returns the name in it. A document
// cannot change to another skill.
func checkDocument(f *form, of, document string) (name string) {
	k, problems := skill.Parse(document)
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, problem := range problems {
			lines[i] = strings.ToUpper(problem.String()[:1]) + problem.String()[1:]
		}
		f.fail("document", strings.Join(lines, " "))
		return ""
	}
	was, _ := skill.Fold(of)
	if is, _ := skill.Fold(k.Name); of != "" && is != was {
		f.fail("document", fmt.Sprintf("The document is of the skill %s. Keep the name %s, or create another skill.", k.Name, of))
	}
	return k.Name
}

func pushedText(p skill.Pushed, draft bool) string {
	switch {
	case !p.Stored && draft:
		return fmt.Sprintf("Nothing has changed. The newest version is %d.", p.Version)
	case draft:
		return fmt.Sprintf("Version %d saved. It runs after you publish it.", p.Version)
	}
	return fmt.Sprintf("Version %d published. It runs from the next message on.", p.Version)
}
