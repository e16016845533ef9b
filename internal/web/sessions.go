package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/text"
)

const sessionsOnPage = 50

var statusOptions = []option{{"", "Any status"}, {"waiting", "Waiting"}, {"thinking", "Running or waiting"}, {"completed", "Ended"},
	{"failed", "Failed"}, {"canceled", "Canceled"}, {"not_started", "Not started"}}

var periodOptions = []option{{"", "Any time"}, {"24h", "Started today"}, {"168h", "Last 7 days"}, {"720h", "Last 30 days"}}

// sessionsView is the list of sessions.
type sessionsView struct {
	List     []session.Summary
	Form     *form
	Filtered bool
	Statuses []option
	Periods  []option
	Pager    map[string]string
	CSV      string // address of the table
}

func (a *App) sessionsPage(w http.ResponseWriter, p *page) error {
	q := p.URL.Query()
	view := sessionsView{Form: &form{Values: q, errs: map[string]string{}}, Statuses: statusOptions, Periods: periodOptions}
	query := session.SummaryQuery{Limit: sessionsOnPage, Status: session.Status(q.Get("status")), Search: strings.TrimSpace(q.Get("q")), Cursor: q.Get("cursor")}
	known := false
	for _, choice := range statusOptions {
		known = known || choice.Value == q.Get("status")
	}
	if !known {
		query.Status = ""
	}
	if caller := q.Get("caller"); caller != "" {
		query.CallerID = &caller
	}
	if back, err := time.ParseDuration(q.Get("since")); err == nil {
		query.CreatedAfter = new(time.Now().Add(-back))
	}
	view.Filtered = query.Status != "" || query.Search != "" || query.CallerID != nil || query.CreatedAfter != nil
	if q.Get("format") == "csv" {
		return a.exportSessions(w, p, query)
	}
	table := without(q, "cursor")
	table.Set("format", "csv")
	view.CSV = "?" + table.Encode()
	list, err := a.srv.Sessions.Summaries(p.Context(), p.Workspace.ID, query)
	if err != nil {
		return err
	}
	view.List = list.Data
	view.Pager = pagerOf(q, list.NextCursor, plural(len(list.Data), "session", "sessions"))
	return a.render(w, p, "sessions", view)
}

// without returns the values of a query besides one.
func without(q url.Values, name string) url.Values {
	other := make(url.Values)
	for key, values := range q {
		if key != name {
			other[key] = values
		}
	}
	return other
}

// sessionView is a session with one of its tabs.
type sessionView struct {
	Session  session.Summary
	Tab      string
	Messages []session.Message
	Older    string // address of older messages
	Events   []eventRow
	More     int64 // seq after which more events follow
	Gone     bool  // events were removed after the time that the settings name
	SQL      []sqlQuery
	Timeline []*timelineTurn
}

// eventRow is an event in the log.
type eventRow struct {
	event.Event
	Text string
}

type sqlQuery struct{ ID, Title, Text string }

const eventsOnPage = 200

func (a *App) sessionPage(w http.ResponseWriter, p *page) error {
	id, ok := request.ID(p.PathValue("session"))
	if !ok {
		return fault.New(fault.SessionNotFound, "The session does not exist in this workspace.")
	}
	sum, err := a.srv.Sessions.Summary(p.Context(), p.Workspace.ID, id)
	if err != nil {
		return err
	}
	view := sessionView{Session: sum, Tab: p.URL.Query().Get("tab")}
	switch view.Tab {
	case "events":
		err = a.readEvents(p, &view)
	case "timeline":
		err = a.readTimeline(p, &view)
	case "export":
	case "sql":
		view.SQL = sqlOf(id)
	default:
		view.Tab = ""
		err = a.readMessages(p, &view)
	}
	if err != nil {
		return err
	}
	return a.render(w, p, "session", view)
}

func (a *App) readMessages(p *page, view *sessionView) error {
	list, err := a.srv.Sessions.Messages(p.Context(), p.Workspace.ID, view.Session.SessionID,
		session.MessageQuery{Limit: sessionsOnPage, Cursor: p.URL.Query().Get("cursor")})
	if err != nil {
		return err
	}
	view.Messages = list.Data
	if list.HasMore {
		view.Older = "?cursor=" + url.QueryEscape(*list.NextCursor)
	}
	return nil
}

func (a *App) readEvents(p *page, view *sessionView) error {
	var after int64
	if seq := p.URL.Query().Get("after"); seq != "" {
		var ok bool
		if after, ok = parseSeq(seq); !ok {
			return fault.New(fault.InvalidCursor, "The position %.20q is not the number of an event.", seq)
		}
	}
	from := eventlog.From{Session: view.Session.SessionID, Seq: after, Since: view.Session.CreatedAt}
	for evs, err := range a.srv.EventLog.After(p.Context(), from) {
		if errors.Is(err, eventlog.ErrGone) {
			view.Gone = true
			return nil
		}
		if err != nil {
			return err
		}
		for _, ev := range evs {
			if len(view.Events) == eventsOnPage {
				view.More = view.Events[eventsOnPage-1].Seq
				return nil
			}
			view.Events = append(view.Events, eventRow{ev, text.Escape(string(ev.Data))})
		}
	}
	return nil
}

// parseSeq parses the number of an event.
func parseSeq(digits string) (int64, bool) {
	var n int64
	for _, r := range digits {
		if r < '0' || r > '9' || n > 1<<58 {
			return 0, false
		}
		n = n*10 + int64(r-'0')
	}
	return n, digits != ""
}

// sqlOf returns statements that show a session in the database.
func sqlOf(id uuid.UUID) []sqlQuery {
	return []sqlQuery{
		{"q-events", "Every event", "SELECT seq, at, kind, data FROM events WHERE session_id = '" + id.String() + "' ORDER BY seq;"},
		{"q-turns", "Turns with their state and sender", "SELECT id, state, error, key_id, created_at, started_at, finished_at FROM turns WHERE session_id = '" + id.String() + "' ORDER BY created_at;"},
		{"q-approvals", "Approvals and secret requests", "SELECT id, kind, status, request, created_at, expires_at FROM approvals WHERE session_id = '" + id.String() + "' ORDER BY created_at;"},
	}
}
