package rest

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
)

// maxPage is how many items a page may have.
const maxPage = 100

// listSessions answers with one page of the workspace's sessions.
func (s *api) listSessions(w http.ResponseWriter, r *apiRequest) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.query()
	q := session.SummaryQuery{
		Limit:        p.limit(20),
		Cursor:       p.one("cursor"),
		CallerID:     p.text("caller_id"),
		Status:       session.Status(p.enum("status", string(session.NotStarted), string(session.Thinking), string(session.Done))),
		CreatedAfter: p.time("created_after"),
		OldestFirst:  p.enum("order", "desc", "asc") == "asc",
	}
	if err := p.Err(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Sessions.Summaries(ctx, r.caller.Workspace.ID, q)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}

// listMessages answers with one page of a session's messages.
func (s *api) listMessages(w http.ResponseWriter, r *apiRequest) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.query()
	q := session.MessageQuery{Limit: p.limit(50), Cursor: p.one("cursor"), NewestFirst: p.enum("order", "asc", "desc") == "desc"}
	if err := p.Err(); err != nil {
		return err
	}
	id, err := r.session()
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Sessions.Messages(ctx, r.caller.Workspace.ID, id, q)
	if err != nil {
		return err
	}
	if err := s.attachFiles(ctx, r, page.Data); err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}

// attachFiles adds the files of messages, with addresses that are valid from now.
func (s *api) attachFiles(ctx context.Context, r *apiRequest, messages []session.Message) error {
	turns := make([]uuid.UUID, len(messages))
	for i, m := range messages {
		turns[i] = m.TurnID
	}
	files, err := s.Files.OfTurns(ctx, r.caller.Workspace.ID, turns)
	if err != nil {
		return err
	}
	for _, f := range files {
		server.CompleteLinks(s.Base(r.Request), f.In)
		server.CompleteLinks(s.Base(r.Request), f.Out)
	}
	for i := range messages {
		m := &messages[i]
		m.Attachments = files[m.TurnID].Out
		if m.Role == "user" {
			m.Attachments = files[m.TurnID].In
		}
		if m.Attachments == nil {
			m.Attachments = []event.File{}
		}
	}
	return nil
}
