package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
)

// patternRow is a pattern of the allow-list.
type patternRow struct {
	permission.Entry
	By string
}

// allowlistView is the page of the patterns that let calls run without an approval.
type allowlistView struct {
	List   []patternRow // newest first
	All    bool         // shows revoked patterns, too
	Hidden int
	Form   *form
	Covers string // what the pattern in the form would cover
}

func (a *App) allowlistPage(w http.ResponseWriter, p *page) error {
	return a.showAllowlist(w, p, http.StatusOK, emptyForm(), "")
}

func (a *App) showAllowlist(w http.ResponseWriter, p *page, status int, f *form, covers string) error {
	list, err := a.Permissions.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	view, names := allowlistView{Form: f, Covers: covers, All: p.URL.Query().Get("all") == "1"}, newAsker(p)
	for _, e := range slices.Backward(list) {
		if e.RevokedAt != nil && !view.All {
			view.Hidden++
			continue
		}
		row := patternRow{Entry: e}
		if name, byCommand := strings.CutPrefix(e.AddedBy, "cli"); byCommand {
			row.By = strings.TrimSpace("command line " + strings.TrimPrefix(name, ":"))
		} else if row.By, err = names.name(p.Context(), e.AddedBy); err != nil {
			return err
		}
		view.List = append(view.List, row)
	}
	return a.renderStatus(w, p, status, "allowlist", view)
}

// changeAllowlist serves the forms of the allow-list.
func (a *App) changeAllowlist(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	switch f.Value("do") {
	case "preview":
		pattern, err := permission.Parse(strings.TrimSpace(f.Value("pattern")))
		if err != nil {
			f.fail("pattern", reasonOf(err))
			return a.showAllowlist(w, p, http.StatusUnprocessableEntity, f, "")
		}
		covers, err := a.coverage(p.Context(), p, pattern)
		if err != nil {
			return err
		}
		return a.showAllowlist(w, p, http.StatusOK, f, covers)
	case "add":
		rule := permission.Rule{Workspace: p.Workspace.ID, Key: p.Visitor.ID, Pattern: strings.TrimSpace(f.Value("pattern"))}
		stored, err := a.Permissions.AddRule(p.Context(), rule)
		if problem := fault.From(err); problem != nil && problem.Code.Status() < 500 {
			f.fail("pattern", problem.Message)
			return a.showAllowlist(w, p, http.StatusUnprocessableEntity, f, "")
		}
		if err != nil {
			return err
		}
		p.flash(w, "Pattern added. Calls that match "+stored+" run without an approval.")
	case "revoke":
		id, _ := uuid.Parse(f.Value("pattern")) // no pattern has the zero id
		ok, err := a.Permissions.Revoke(p.Context(), p.Workspace.ID, id)
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.RouteNotFound, "This pattern does not exist, or is revoked already.")
		}
		p.flash(w, "Pattern revoked. Its calls need an approval again.")
	default:
		return unknownForm()
	}
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/allowlist")
}
