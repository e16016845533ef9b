package sessions

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
)

// listSessions returns one page of the workspace's sessions.
func (s *api) listSessions(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.Query()
	q := session.SummaryQuery{
		Limit:         p.Limit(20),
		Cursor:        p.Cursor(),
		CallerID:      p.OptionalText("caller_id"),
		User:          p.OptionalText("user"),
		Metadata:      p.Pairs("metadata"),
		Status:        session.Status(p.Enum("status", session.Statuses...)),
		CreatedAfter:  p.Time("created_after"),
		CreatedBefore: p.Time("created_before"),
		Search:        p.Search("q"),
		OldestFirst:   p.Enum("order", "desc", "asc") == "asc",
	}
	if err := p.Err(); err != nil {
		return err
	}
	if err := r.ConfineList(&q); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Sessions.Summaries(ctx, r.Caller.Workspace.ID, q)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}

// listMessages returns one page of a session's messages.
func (s *api) listMessages(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.Query()
	q := session.MessageQuery{Limit: p.Limit(50), Cursor: p.Cursor(), NewestFirst: p.Enum("order", "asc", "desc") == "desc"}
	if err := p.Err(); err != nil {
		return err
	}
	asOf, given, err := server.ParseCursor("as_of_seq", p.Values["as_of_seq"])
	if err != nil {
		return server.InvalidCursor("as_of_seq", fmt.Sprintf(
			"as_of_seq %.40q is not the id of an event. Send the id of one frame of the session, such as 1042, without sign, blank or leading zero.",
			strings.Join(p.Values["as_of_seq"], ",")))
	}
	if given {
		q.AsOf = &asOf
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Sessions.Messages(ctx, r.Caller.Workspace.ID, id, q)
	if err != nil {
		return err
	}
	if err := s.AttachFiles(ctx, s.Base(r.Request), r.Caller.Workspace.ID, page.Data); err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}
