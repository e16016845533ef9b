package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
)

// filterNames are the filters of the list of sessions.
var filterNames = []string{"q", "status", "since", "before", "user", "caller", "meta"}

// filtersOf returns the filters of a query that are set.
func filtersOf(q url.Values) url.Values {
	set := make(url.Values)
	for _, name := range filterNames {
		if v := q.Get(name); v != "" {
			set.Set(name, v)
		}
	}
	return set
}

// summaryQuery returns the query of a page. Values that make no filter are ignored.
func summaryQuery(q url.Values) session.SummaryQuery {
	query := session.SummaryQuery{Limit: sessionsOnPage, Search: strings.TrimSpace(q.Get("q")), Cursor: q.Get("cursor")}
	if slices.ContainsFunc(statusOptions, func(o option) bool { return o.Value == q.Get("status") }) {
		query.Status = session.Status(q.Get("status"))
	}
	if caller := q.Get("caller"); caller != "" {
		query.CallerID = &caller
	}
	if user := q.Get("user"); user != "" {
		query.User = &user
	}
	if back, err := time.ParseDuration(q.Get("since")); err == nil {
		query.CreatedAfter = new(time.Now().Add(-back))
	}
	if day, err := time.Parse(time.DateOnly, q.Get("before")); err == nil {
		query.CreatedBefore = &day
	}
	if name, value, ok := strings.Cut(q.Get("meta"), "="); ok && name != "" {
		query.Metadata = map[string]string{strings.TrimSpace(name): strings.TrimSpace(value)}
	}
	return query
}

// viewsOf returns the views of the page: some that every member has, and those of the visitor.
func (a *App) viewsOf(p *page, filters string) ([]sessionsTab, error) {
	list := []sessionsTab{{tab: tab{Label: "All", Href: "?"}}, {tab: tab{Label: "Waiting", Href: "?status=waiting"}},
		{tab: tab{Label: "Failed today", Href: "?since=24h&status=failed"}}}
	own, err := a.accounts.Views(p.Context(), p.Workspace.ID, p.Visitor.ID)
	for _, v := range own {
		list = append(list, sessionsTab{tab{Label: maskText(v.Name), Href: "?" + v.Filters}, v.ID.String()})
	}
	for i := range list {
		list[i].Current = list[i].Href == "?"+filters
	}
	return list, err
}

// changeViews saves and deletes the visitor's views of the list.
func (a *App) changeViews(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	back := "/w/" + p.Workspace.Slug + "/sessions"
	switch f.Value("do") {
	case "save":
		q, err := url.ParseQuery(f.Value("filters"))
		if err != nil {
			return unknownForm()
		}
		filters := filtersOf(q).Encode()
		if err := a.accounts.SaveView(p.Context(), p.Workspace.ID, p.Visitor.ID, f.Value("name"), filters); err != nil {
			if err := f.take(err); err != nil {
				return err
			}
			p.URL.RawQuery = filters
			return a.showSessions(w, p, http.StatusUnprocessableEntity, f)
		}
		p.flash(w, "View "+strings.TrimSpace(f.Value("name"))+" saved. Only you see it.")
		back += "?" + filters
	case "delete":
		id, err := uuid.Parse(f.Value("view"))
		if err != nil {
			return unknownForm()
		}
		if err := a.accounts.DeleteView(p.Context(), p.Workspace.ID, p.Visitor.ID, id); err != nil {
			return err
		}
		p.flash(w, "View deleted.")
	default:
		return unknownForm()
	}
	return p.redirect(w, back)
}
