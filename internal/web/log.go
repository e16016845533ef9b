package web

import (
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/store/adminlog"
)

const changesOnPage = 50

// logObjects are the tables of the log with their names for a reader.
var logObjects = []option{{"", "Any object"}, {"agent_versions", "version of an agent"}, {"agents", "agent"},
	{"allowlist", "pattern of the allow-list"},
	{"api_keys", "API key"}, {"budgets", "budget"}, {"callback_secrets", "signing secret"}, {"credentials", "credential"},
	{"documents", "document"},
	{"egress_policies", "egress policy"}, {"members", "member"}, {"server_state", "server"}, {"skill_versions", "version of a skill"},
	{"skills", "skill"},
	{"tool_rules", "rule of a tool"}, {"users", "user"}, {"workspaces", "workspace"}}

var logPeriods = []option{{"", "Any time"}, {"24h", "Last 24 hours"}, {"168h", "Last 7 days"}, {"720h", "Last 30 days"}}

var logActions = map[string]string{"insert": "created", "update": "changed", "delete": "deleted"}

// logView is a page of the log of changes.
type logView struct {
	List     []logRow
	Form     *form
	Objects  []option
	Periods  []option
	Filtered bool
	Server   bool // of all workspaces
	Pager    map[string]string
}

// logRow is a change.
type logRow struct {
	adminlog.Entry
	Object, Action string
	Title          string // of the object: its name, or its id
	Who            string
	Kind           string // of the actor, if its name does not say so
	Workspace      string // its slug in the log of the server; its id if it is deleted
	Fields         []logField
	ByActor        string // address of the changes by this actor; "" for none
	OfObject       string // address of the changes of this object
}

// logField is a column that a change has set.
type logField struct{ Name, Before, After string }

// workspaceLog shows the changes of a workspace.
func (a *App) workspaceLog(w http.ResponseWriter, p *page) error {
	return a.showLog(w, p, adminlog.Query{Workspace: &p.Workspace.ID})
}

// serverLog shows the changes of the server and of all workspaces.
func (a *App) serverLog(w http.ResponseWriter, p *page) error {
	return a.showLog(w, p, adminlog.Query{})
}

func (a *App) showLog(w http.ResponseWriter, p *page, query adminlog.Query) error {
	q := p.URL.Query()
	view := logView{Form: &form{Values: q, errs: map[string]string{}}, Objects: logObjects, Periods: logPeriods,
		Server: query.Workspace == nil}
	filter := func(name string) *string {
		if v := q.Get(name); v != "" {
			view.Filtered = true
			return &v
		}
		return nil
	}
	query.Object, query.ObjectID, query.Actor, query.Cursor, query.Limit = filter("object"), filter("id"), filter("actor"), q.Get("cursor"),
		changesOnPage
	if back, err := time.ParseDuration(q.Get("since")); err == nil {
		query.Since, view.Filtered = new(time.Now().Add(-back)), true
	}
	list, err := a.Log.List(p.Context(), query)
	if err != nil {
		return err
	}
	names, err := a.logNames(p, view.Server)
	if err != nil {
		return err
	}
	for _, e := range list.Data {
		view.List = append(view.List, logRowOf(e, names))
	}
	view.Pager = pagerOf(q, list.NextCursor, plural(len(list.Data), "change", "changes"))
	return a.render(w, p, "log", view)
}

// pagerOf returns the addresses of the pages beside this one.
func pagerOf(q map[string][]string, next *string, shown string) map[string]string {
	pager, rest := map[string]string{"Shown": shown}, without(q, "cursor")
	if len(q["cursor"]) > 0 {
		pager["First"] = "?" + rest.Encode()
	}
	if next != nil {
		rest.Set("cursor", *next)
		pager["Older"] = "?" + rest.Encode()
	}
	return pager
}

// logNames returns the slugs of workspaces by their ids, if the page shows more than one.
func (a *App) logNames(p *page, all bool) (map[string]string, error) {
	names := make(map[string]string)
	if !all {
		return names, nil
	}
	list, err := a.srv.Workspaces.List(p.Context())
	for _, ws := range list {
		names[ws.ID.String()] = ws.Slug
	}
	return names, err
}

func logRowOf(e adminlog.Entry, names map[string]string) logRow {
	row := logRow{Entry: e, Object: e.Object, Action: logActions[e.Action], Kind: e.Actor.Kind, Fields: changedFields(e.Before, e.After)}
	row.Title = titleOf(e)
	for _, o := range logObjects {
		if o.Value == e.Object {
			row.Object = "the " + o.Label
		}
	}
	if e.Actor.Name != nil {
		row.Who = *e.Actor.Name
	} else if e.Actor.ID != nil {
		row.Who = *e.Actor.ID
	}
	if row.Who == "" {
		row.Who, row.Kind = map[string]string{"service": "The server", "command": "A command", "database": "A program"}[e.Actor.Kind], ""
	}
	if e.Actor.ID != nil {
		row.ByActor = "?" + encode("actor", *e.Actor.ID)
	}
	row.OfObject = "?" + encode("object", e.Object, "id", e.ObjectID)
	if e.Workspace != nil {
		if row.Workspace = names[e.Workspace.String()]; row.Workspace == "" {
			row.Workspace = e.Workspace.String()
		}
	}
	return row
}

// titleOf returns the name of the object of a change.
func titleOf(e adminlog.Entry) string {
	row := columns(e.After)
	if len(row) == 0 {
		row = columns(e.Before)
	}
	for _, name := range []string{"slug", "email", "pattern", "path", "tool", "name"} {
		if row[name] != "" {
			return row[name]
		}
	}
	if e.Object == "agent_versions" && row["number"] != "0" {
		return "v" + row["number"]
	}
	return e.ObjectID
}
