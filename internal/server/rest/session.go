package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
)

// getSession returns one session as lists show it.
func (s *api) getSession(w http.ResponseWriter, r *apiRequest) error {
	if err := r.bare(); err != nil {
		return err
	}
	id, err := r.session()
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	sum, err := s.Sessions.Summary(ctx, r.caller.Workspace.ID, id)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, sum)
}

// maxTitle is the maximum number of characters of a title.
const maxTitle = 200

// changeFields are the fields of a change of a session. Absent fields stay as they are.
var changeFields = []request.Field[session.Change]{
	{Name: "title", Parse: func(c *request.Checks, at string, raw json.RawMessage, to *session.Change) {
		to.Title = new(c.Word(at, raw, maxTitle))
	}},
	{Name: "user", Parse: func(c *request.Checks, at string, raw json.RawMessage, to *session.Change) {
		to.User = new(c.Word(at, raw, request.MaxUser))
	}},
	{Name: "metadata", Parse: func(c *request.Checks, at string, raw json.RawMessage, to *session.Change) {
		to.Metadata = c.Metadata(at, raw)
	}},
}

// updateSession changes the title and the labels of a session.
func (s *api) updateSession(w http.ResponseWriter, r *apiRequest) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.query().Checks
	var change session.Change
	request.ParseMembers(c, "", body, &change, changeFields, nil)
	if err := c.Err(); err != nil {
		return err
	}
	id, err := r.session()
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	sum, err := s.Sessions.Edit(ctx, r.caller.Workspace.ID, id, change)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, sum)
}

// erased is the response to the erasure of a session.
type erased struct {
	SessionID uuid.UUID `json:"session_id"`
	ErasedAt  time.Time `json:"erased_at"`
	Already   bool      `json:"already_erased"`
}

// deleteSession erases a session: the content goes, its place in lists and its counts stay. A key
// without the scope admin may erase only the sessions that it began.
func (s *api) deleteSession(w http.ResponseWriter, r *apiRequest) error {
	if err := r.bare(); err != nil {
		return err
	}
	id, err := r.session()
	if err != nil {
		return err
	}
	workspace := r.caller.Workspace.ID
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	owns, err := s.Sessions.IsOwner(ctx, workspace, id, r.caller.Key)
	if err != nil {
		return err
	}
	if !owns && !r.caller.Scopes.Allows(apikey.Admin) {
		return server.MissingScope(apikey.Admin)
	}
	if _, err := s.Turns.Cancel(r.Context(), workspace, id); err != nil { // stops the worker, which Erase does not know
		return err
	}
	e, err := s.Sessions.EraseContent(r.Context(), id, r.caller.Key)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, erased{id, e.At.UTC(), e.Already})
}
