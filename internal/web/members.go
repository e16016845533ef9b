package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// option is a choice of a select element.
type option struct{ Value, Label string }

// roleOptions lists the roles with what they allow.
var roleOptions = []option{
	{"viewer", "Viewer: read sessions and settings"},
	{"approver", "Approver: also answer approvals and secret requests"},
	{"editor", "Editor: also chat, write knowledge, change settings"},
	{"owner", "Owner: everything, keys and members included"},
}

// membersView is the page of the members of a workspace.
type membersView struct {
	List    []account.Member
	Roles   []option
	Form    *form
	Link    string          // of a new member, shown once
	Invited string          // address of the new member
	Remove  *account.Member // asks before this member is removed
}

func (a *App) membersPage(w http.ResponseWriter, p *page) error {
	return a.showMembers(w, p, http.StatusOK, membersView{})
}

func (a *App) showMembers(w http.ResponseWriter, p *page, status int, view membersView) error {
	var err error
	if view.List, err = a.accounts.Members(p.Context(), p.Workspace.ID); err != nil {
		return err
	}
	if view.Form == nil {
		view.Form = emptyForm("role", "viewer")
	}
	view.Roles = roleOptions
	if id := p.URL.Query().Get("remove"); id != "" && p.Can("admin") {
		for i := range view.List {
			if view.List[i].ID == id {
				view.Remove = &view.List[i]
			}
		}
	}
	return a.renderStatus(w, p, status, "members", view)
}

// changeMembers serves the forms of the members page.
func (a *App) changeMembers(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	back := "/w/" + p.Workspace.Slug + "/settings/members"
	switch f.Value("do") {
	case "invite":
		return a.invite(w, p, f)
	case "role":
		if err := a.accounts.SetRole(p.Context(), p.Workspace.ID, f.Value("user"), apikey.Role(f.Value("role"))); err != nil {
			return a.memberFailed(w, p, err)
		}
		p.flash(w, "Role changed to "+f.Value("role")+". It applies at once.")
	case "remove":
		if err := a.accounts.Remove(p.Context(), p.Workspace.ID, f.Value("user")); err != nil {
			return a.memberFailed(w, p, err)
		}
		p.flash(w, "Member removed. Personal tokens for this workspace do not work any more.")
	case "link":
		return a.newPasswordLink(w, p, f.Value("user"))
	default:
		return unknownForm()
	}
	return p.redirect(w, back)
}

// memberFailed shows why a member was not changed.
func (a *App) memberFailed(w http.ResponseWriter, p *page, err error) error {
	f := emptyForm("role", "viewer")
	if err := f.take(err); err != nil {
		return err
	}
	return a.showMembers(w, p, http.StatusUnprocessableEntity, membersView{Form: f})
}

// invite adds a user to the workspace. An address that has no user yet gets one, with a link to set
// the password.
func (a *App) invite(w http.ResponseWriter, p *page, f *form) error {
	view := membersView{Form: f}
	fail := func(err error) error {
		if err := f.take(err, "email", "name", "role"); err != nil {
			return err
		}
		return a.showMembers(w, p, http.StatusUnprocessableEntity, view)
	}
	role := apikey.Role(f.Value("role"))
	if !role.Known() {
		f.fail("role", "Choose a role.")
		return a.showMembers(w, p, http.StatusUnprocessableEntity, view)
	}
	email := strings.TrimSpace(f.Value("email"))
	u, err := a.accounts.User(p.Context(), email)
	isNew := fault.From(err) != nil
	if isNew {
		u, err = a.accounts.Create(p.Context(), account.NewUser{Email: email, Name: f.Value("name")})
	}
	if err != nil {
		return fail(err)
	}
	if err := a.accounts.SetRole(p.Context(), p.Workspace.ID, u.ID, role); err != nil {
		return fail(err)
	}
	if !isNew {
		p.flash(w, u.DisplayName()+" is a member now and signs in as before.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/members")
	}
	text, err := a.accounts.NewPasswordToken(p.Context(), u.ID)
	if err != nil {
		return err
	}
	return a.showMembers(w, p, http.StatusOK, membersView{Link: a.passwordLink(p, text), Invited: u.Email})
}

// newPasswordLink shows a link for a member who has no password yet. Only administrators of the
// server replace a password that exists: the member may belong to other workspaces.
func (a *App) newPasswordLink(w http.ResponseWriter, p *page, id string) error {
	list, err := a.accounts.Members(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.ID != id || m.HasPassword || m.OIDC || m.Admin {
			continue
		}
		text, err := a.accounts.NewPasswordToken(p.Context(), id)
		if err != nil {
			return err
		}
		return a.showMembers(w, p, http.StatusOK, membersView{Link: a.passwordLink(p, text), Invited: m.Email})
	}
	return fault.New(fault.InsufficientScope, "This member has a password. Only an administrator of the server can replace it.")
}

func (a *App) passwordLink(p *page, text string) string {
	return p.Base() + "/password?token=" + url.QueryEscape(text)
}
