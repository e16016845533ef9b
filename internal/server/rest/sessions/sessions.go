// Package sessions serves the operations of sessions: to list, change and erase them, their
// messages, the feedback on their answers, their approvals and the results of their tools. It
// starts no turn and streams nothing.
package sessions

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
)

// api has the handlers.
type api struct{ *server.Server }

// Handlers returns the handlers by their operationIds.
func Handlers(srv *server.Server) map[string]call.Handler {
	s := &api{srv}
	return map[string]call.Handler{
		"listSessions":  s.listSessions,
		"getSession":    s.getSession,
		"updateSession": s.updateSession,
		"deleteSession": s.deleteSession,
		"forkSession":   s.forkSession,
		"listMessages":  s.listMessages,
		"getContext":    s.getContext,
		"cancelTurn":    s.cancelTurn,

		"createSessionToken": s.createSessionToken,
		"createUserToken":    s.createUserToken,
		"listTokens":         s.listTokens,
		"revokeToken":        s.revokeToken,

		"rateAnswer":   s.rateAnswer,
		"listFeedback": s.listFeedback,

		"listApprovals":  s.listApprovals,
		"getApproval":    s.getApproval,
		"decideApproval": s.decideApproval,
		"answerSecret":   s.answerSecret,

		"postToolResults": s.postToolResults,
		"postLaterResult": s.postLaterResult,
	}
}

// getSession returns one session as lists show it.
func (s *api) getSession(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	sum, err := s.Sessions.Summary(ctx, r.Caller.Workspace.ID, id)
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
func (s *api) updateSession(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.Query().Checks
	var change session.Change
	request.ParseMembers(c, "", body, &change, changeFields, nil)
	if err := c.Err(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	sum, err := s.Sessions.Edit(ctx, r.Caller.Workspace.ID, id, change)
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
func (s *api) deleteSession(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	workspace := r.Caller.Workspace.ID
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	owns, err := s.Sessions.IsOwner(ctx, workspace, id, r.Caller.Key)
	if err != nil {
		return err
	}
	if !owns && !r.Caller.Scopes.Allows(apikey.Admin) {
		return server.MissingScope(apikey.Admin)
	}
	if _, err := s.Turns.Cancel(r.Context(), workspace, id); err != nil { // stops the worker, which Erase does not know
		return err
	}
	e, err := s.Sessions.EraseContent(r.Context(), id, r.Caller.By())
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, erased{id, e.At.UTC(), e.Already})
}
