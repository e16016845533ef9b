package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// preset is a usual set of scopes.
type preset struct{ Value, Label, Scopes string }

var presets = []preset{
	{"chat", "Chat client", "chat, sessions:read"},
	{"audit", "Read-only audit", "sessions:read"},
	{"automation", "Automation", "chat, tools:write, files:write"},
	{"protocol", "Protocol", "mcp, a2a"},
	{"custom", "Custom", "choose below"},
}

// scopeChoice is a scope in the form of a new key.
type scopeChoice struct {
	Name, Hint string
	Strong     bool // marked: it gives much
}

var scopeChoices = [][]scopeChoice{
	{{"chat", "Send messages, answer approvals", false}, {"sessions:read", "Read sessions, resume streams", false}},
	{{"tools:write", "Post results of tools that answer later, includes tools:read", false},
		{"tools:read", "List tools and files, and download", false}},
	{{"files:write", "Send files in, usual types", false}, {"files:write:unrestricted", "Any type but programs", true}},
	{{"mcp", "MCP, includes mcp:read and wiki:write", false}, {"mcp:read", "MCP, reading only", false}},
	{{"wiki:write", "Write knowledge", false}, {"a2a", "Other agents", false}},
	{{"config:read", "Read the settings", false}, {"config:write", "Change the settings", true}},
	{{"secret", "Answer secret requests", true}, {"admin", "Keys, members and all settings", true}},
}

var lifeOptions = []option{{"90", "in 90 days"}, {"30", "in 30 days"}, {"365", "in 365 days"}, {"never", "never"}}

var overlapOptions = []option{{"24h", "24 hours"}, {"0s", "no time: it ends now"}, {"1h", "1 hour"}, {"168h", "7 days"}}

// keyRow is a key in the list.
type keyRow struct {
	apikey.Key
	By    string
	Gone  bool
	State string // class of the status
	Word  string
	When  string
}

// keysView is the page of the keys of a workspace.
type keysView struct {
	List     []keyRow
	All      bool // shows expired and revoked keys, too
	Hidden   int
	Form     *form
	Presets  []preset
	Scopes   [][]scopeChoice
	Lives    []option
	Overlaps []option
	Text     string // of a new key, shown once
	New      apikey.Key
	Roll     *keyRow // asks for the overlap
	Revoke   *keyRow // asks before this key is revoked
}

func (a *App) keysPage(w http.ResponseWriter, p *page) error {
	return a.showKeys(w, p, http.StatusOK, keysView{})
}

func (a *App) showKeys(w http.ResponseWriter, p *page, status int, view keysView) error {
	keys, err := a.srv.Keys.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	names, err := a.memberNames(p)
	if err != nil {
		return err
	}
	q := p.URL.Query()
	view.All = q.Get("all") == "1"
	for _, k := range slices.Backward(keys) {
		row := keyRowOf(k, names, time.Now())
		if p.Can("admin") && !row.Gone && !k.Webhook {
			if q.Get("roll") == k.ID && k.Member == "" {
				view.Roll = &row
			}
			if q.Get("revoke") == k.ID {
				view.Revoke = &row
			}
		}
		if row.Gone && !view.All {
			view.Hidden++
			continue
		}
		view.List = append(view.List, row)
	}
	if view.Form == nil {
		view.Form = emptyForm("preset", "chat", "life", "90", "overlap", "24h")
	}
	view.Presets, view.Scopes, view.Lives, view.Overlaps = presets, scopeChoices, lifeOptions, overlapOptions
	return a.renderStatus(w, p, status, "keys", view)
}

// memberNames returns the names of the members by their ids, for the column of creators.
func (a *App) memberNames(p *page) (map[string]string, error) {
	members, err := a.accounts.Members(p.Context(), p.Workspace.ID)
	names := map[string]string{p.Visitor.ID: p.Visitor.Name}
	for _, m := range members {
		names[m.ID] = m.DisplayName()
	}
	return names, err
}

func keyRowOf(k apikey.Key, names map[string]string, now time.Time) keyRow {
	row := keyRow{Key: k, By: "command line", State: "ok", Word: "No expiry"}
	if k.CreatedBy != nil {
		if row.By = names[*k.CreatedBy]; row.By == "" {
			row.By = *k.CreatedBy
		}
	}
	switch {
	case k.RevokedAt != nil:
		row.Gone, row.State, row.Word, row.When = true, "off", "Revoked", day(k.RevokedAt)
	case k.ExpiresAt != nil && k.ExpiresAt.Before(now):
		row.Gone, row.State, row.Word, row.When = true, "off", "Expired", day(k.ExpiresAt)
	case k.ExpiresAt != nil:
		row.Word, row.When = span(k.ExpiresAt.Sub(now))+" left", day(k.ExpiresAt)
		if k.ExpiresAt.Sub(now) < 14*24*time.Hour || k.ReplacedBy != nil {
			row.State = "warn"
		}
	}
	return row
}

// changeKeys serves the forms of the keys page. The text of a new key is in this answer only.
func (a *App) changeKeys(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	switch f.Value("do") {
	case "create":
		return a.createKey(w, p, f)
	case "roll":
		stay, err := time.ParseDuration(f.Value("overlap"))
		if err != nil || stay < 0 || stay > 7*24*time.Hour {
			return fault.New(fault.InvalidRequestBody, "The old key may stay valid for at most 7 days.")
		}
		k, text, err := a.srv.Keys.Rotate(p.Context(), p.Workspace.ID, f.Value("key"), stay)
		if err != nil {
			return keyFault(err)
		}
		return a.showKeys(w, p, http.StatusOK, keysView{Text: text, New: k})
	case "revoke":
		if err := a.srv.Keys.Revoke(p.Context(), p.Workspace.ID, f.Value("key")); err != nil {
			return keyFault(err)
		}
		p.flash(w, "Key revoked. Its streams were closed.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/developer")
	}
	return unknownForm()
}

func (a *App) createKey(w http.ResponseWriter, p *page, f *form) error {
	g := apikey.Grant{Workspace: p.Workspace.ID, Name: strings.TrimSpace(f.Value("name")),
		By: &apikey.Principal{Workspace: p.Workspace.ID, Key: p.Visitor.ID, Name: p.Visitor.Name, Scopes: p.Scopes}}
	names := f.Values["scope"]
	for _, choice := range presets {
		if choice.Value == f.Value("preset") && choice.Value != "custom" {
			names = strings.Split(choice.Scopes, ", ")
		}
	}
	for _, name := range names {
		g.Scopes = append(g.Scopes, apikey.Scope(name))
	}
	life, ok := lifeOf(f.Value("life"))
	if g.Life = life; !ok {
		f.fail("life", "Choose when the key expires.")
		return a.showKeys(w, p, http.StatusUnprocessableEntity, keysView{Form: f})
	}
	k, text, err := a.srv.Keys.Create(p.Context(), g)
	if err != nil {
		if err := f.take(err, "name", "scopes", "life"); err != nil {
			return err
		}
		return a.showKeys(w, p, http.StatusUnprocessableEntity, keysView{Form: f})
	}
	return a.showKeys(w, p, http.StatusOK, keysView{Text: text, New: k})
}

// keyFault returns what a user can do about an error of the store.
func keyFault(err error) error {
	switch {
	case errors.Is(err, apikey.ErrNotFound):
		return fault.New(fault.RouteNotFound, "This key does not exist, or is revoked already.")
	case errors.Is(err, apikey.ErrReplaced):
		return fault.New(fault.InvalidRequestBody, "This key has been rolled already. Roll the new one.")
	case errors.Is(err, apikey.ErrOnlyOne):
		return fault.New(fault.InvalidRequestBody, "A webhook_token is rolled on its own page.")
	case errors.Is(err, apikey.ErrPersonal):
		return fault.New(fault.InvalidRequestBody, "This is the personal token of a member, who creates another one.")
	}
	return err
}
