package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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
	Views    []sessionsTab
	Filters  string // of this page, for a view; "" if there are none
	More     bool   // the filters that are seldom used are open
}

// sessionsTab is a named set of filters.
type sessionsTab struct {
	tab
	ID string // of a view that the member has saved
}

func (a *App) sessionsPage(w http.ResponseWriter, p *page) error {
	return a.showSessions(w, p, http.StatusOK, nil)
}

// showSessions renders the page. f is the form of a view that was not accepted, or nil.
func (a *App) showSessions(w http.ResponseWriter, p *page, status int, f *form) error {
	q := p.URL.Query()
	view := sessionsView{Form: &form{Values: q, errs: map[string]string{}}, Statuses: statusOptions, Periods: periodOptions,
		Filters: filtersOf(q).Encode()}
	if f != nil {
		view.Form.Note = f.Note
	}
	query := summaryQuery(q)
	view.Filtered = view.Filters != ""
	view.More = q.Get("user")+q.Get("caller")+q.Get("meta")+q.Get("before") != ""
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
	if view.Views, err = a.viewsOf(p, view.Filters); err != nil {
		return err
	}
	return a.renderStatus(w, p, status, "sessions", view)
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
	Folder   folderView
	Ratings  map[uuid.UUID]rating // of the answers, by their turns
	Calls    map[uuid.UUID][]callRow
}

// callRow is a call of a tool.
type callRow struct {
	session.ToolCall
	By *session.Replied // nil: the result was not posted from outside
}

// rating is an opinion of an answer.
type rating struct {
	session.Feedback
	By string
}

// eventRow is an event in the log.
type eventRow struct {
	event.Event
	Text string
}

type sqlQuery struct{ ID, Title, Text string }

const eventsOnPage = 200

// sessionID returns the session in the path. A malformed id is not found.
func sessionID(p *page) (uuid.UUID, error) {
	id, ok := request.ID(p.PathValue("session"))
	if !ok {
		return id, fault.New(fault.SessionNotFound, "The session does not exist in this workspace.")
	}
	return id, nil
}

func (a *App) sessionPage(w http.ResponseWriter, p *page) error {
	id, err := sessionID(p)
	if err != nil {
		return err
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
	case "files":
		err = a.readFolder(p, &view)
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

// forkSession forks a session at the end of one of its answers, and opens the fork.
func (a *App) forkSession(w http.ResponseWriter, p *page) error {
	id, err := sessionID(p)
	if err != nil {
		return err
	}
	f := newForm(p)
	seq, ok := parseSeq(f.Value("seq"))
	if f.Value("do") != "fork" || !ok {
		return unknownForm()
	}
	fork, err := a.srv.Sessions.Fork(p.Context(), p.Workspace.ID, id, &seq, p.Visitor.ID)
	if err != nil {
		return err
	}
	p.flash(w, "Forked the session. A message to the fork continues from here.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/sessions/"+fork.SessionID.String())
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
	if err := a.readCalls(p, view); err != nil {
		return err
	}
	return a.readRatings(p, view)
}

// readCalls reads the calls of the answers, with who posted their results.
func (a *App) readCalls(p *page, view *sessionView) error {
	given, err := a.srv.Sessions.Replies(p.Context(), p.Workspace.ID, view.Session.SessionID)
	if err != nil {
		return err
	}
	names := newAsker(p)
	view.Calls = make(map[uuid.UUID][]callRow)
	for _, m := range view.Messages {
		var calls []session.ToolCall
		if len(m.ToolCalls) > 0 {
			if err := json.Unmarshal(m.ToolCalls, &calls); err != nil {
				return fmt.Errorf("read the calls of a message: %w", err)
			}
		}
		for _, c := range calls {
			c.Summary = strings.TrimPrefix(c.Summary, c.Tool+" ")
			row := callRow{ToolCall: c}
			if by, ok := given[c.ToolUseID]; ok {
				if by.Key, err = names.name(p.Context(), by.Key); err != nil {
					return err
				}
				row.By = &by
			}
			view.Calls[m.TurnID] = append(view.Calls[m.TurnID], row)
		}
	}
	return nil
}

func (a *App) readRatings(p *page, view *sessionView) error {
	list, err := a.srv.Sessions.Feedback(p.Context(), p.Workspace.ID, view.Session.SessionID)
	if err != nil {
		return err
	}
	names := newAsker(p)
	view.Ratings = make(map[uuid.UUID]rating, len(list))
	for _, f := range list {
		by, err := names.name(p.Context(), f.Key)
		if err != nil {
			return err
		}
		view.Ratings[f.TurnID] = rating{f, by}
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

// sqlOf returns statements on the audit views that show a session.
func sqlOf(id uuid.UUID) []sqlQuery {
	of := " WHERE session_id = '" + id.String() + "' ORDER BY seq;"
	return []sqlQuery{
		{"q-events", "Every event", "SELECT seq, at, event, summary, data FROM audit.events" + of},
		{"q-turns", "Turns with their outcome and sender",
			"SELECT turn_id, at, outcome, error, actor_kind, actor_id, protocol, address, canceled_by FROM audit.turns" + of},
		{"q-tools", "Tool calls with what let them run",
			"SELECT seq, at, tool, summary, outcome, decided_by, pattern, approval_id FROM audit.tool_calls" + of},
	}
}
