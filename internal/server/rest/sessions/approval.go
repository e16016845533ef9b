package sessions

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// approval returns the approval in the path. A malformed id is not found, nor is an approval of a
// session that the caller's browser token is not for.
func (s *api) approval(r *call.Request) (uuid.UUID, error) {
	id, err := approvalID(r)
	if err != nil || r.Caller.Only == nil {
		return id, err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	a, err := s.Sessions.Approval(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return id, err
	}
	err = r.CheckSession(s.Server, a.SessionID)
	if f := fault.From(err); f != nil && f.Code == fault.SessionNotFound {
		err = session.ApprovalNotFound(id)
	}
	return id, err
}

func approvalID(r *call.Request) (uuid.UUID, error) {
	id, ok := request.ID(r.PathValue("approvalId"))
	if !ok {
		return uuid.Nil, fault.New(fault.ApprovalNotFound, "No such approval in this workspace: an id looks like %s. A tool_use_id is not one: "+
			"the approval that a call waits for is in input_required, and results of your own tools are posted to the reply_url of "+
			"tool_required.", uuid.Nil)
	}
	return id, nil
}

// listApprovals returns one page of the inbox.
func (s *api) listApprovals(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.Query()
	q := session.ApprovalQuery{Limit: p.Limit(20), Cursor: p.Cursor(), Session: p.ID("session_id"),
		Status: p.Enum("status", "pending", string(event.Allowed), string(event.Denied), string(event.Provided), string(event.Skipped),
			string(event.Expired), "canceled")}
	if err := p.Err(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Sessions.Approvals(ctx, r.Caller.Workspace.ID, q)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}

// getApproval returns one approval or secret request, or a wait for the caller's own tools.
func (s *api) getApproval(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	id, err := s.approval(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	a, err := s.Sessions.Approval(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return err
	}
	if a.Kind == event.InputResult { // nothing that a client can answer
		return fault.New(fault.ApprovalNotFound, "No approval %s in this workspace.", id)
	}
	return server.WriteData(w, http.StatusOK, a)
}

// decideApproval allows or denies an operation of a turn.
func (s *api) decideApproval(w http.ResponseWriter, r *call.Request) error {
	return s.decide(w, r, func(c *request.Checks, body []request.Member) turn.Answer {
		return c.Decision(body, request.DecisionFields)
	})
}

// answerSecret provides a secret, or lets the turn continue without it.
func (s *api) answerSecret(w http.ResponseWriter, r *call.Request) error {
	return s.decide(w, r, (*request.Checks).Secret)
}

// decided is the response to a decision.
type decided struct {
	ApprovalID uuid.UUID        `json:"approval_id"`
	Kind       event.Input      `json:"kind"`
	KeyName    string           `json:"key_name,omitempty"` // the name of a requested secret
	Status     string           `json:"status"`
	DecidedAt  *time.Time       `json:"decided_at"`
	DecidedBy  *session.Decider `json:"decided_by"`
	Pattern    *string          `json:"allowlist_pattern"`
	SessionID  uuid.UUID        `json:"session_id"`
	EventsURL  string           `json:"events_url"`
	Already    bool             `json:"already_decided"`
}

func (s *api) decide(w http.ResponseWriter, r *call.Request, parse func(*request.Checks, []request.Member) turn.Answer) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.Query().Checks
	a := parse(c, body)
	key := c.Once(r.Header.Values("Idempotency-Key"))
	if err := c.Err(); err != nil {
		return err
	}
	if a.Approval, err = s.approval(r); err != nil {
		return err
	}
	if err := r.ConfineAnswer(&a); err != nil {
		return err
	}
	a.Key, a.Scopes = r.Caller.Key, r.Caller.Scopes.Expand().Strings()
	about := []any{a.Approval, a.Outcome, a.Reason, a.Pattern} // without the secret
	if a.Actor != "" {
		about = append(about, a.Actor)
	}
	return call.Once(s.Server, w, r, key, about, func(ctx context.Context) (any, error) {
		d, err := s.Turns.Decide(ctx, r.Caller.Workspace.ID, a)
		if err != nil {
			return nil, err
		}
		return s.decided(r, d), nil
	})
}

func (s *api) decided(r *call.Request, d turn.Decided) decided {
	var ask event.InputRequired
	_ = json.Unmarshal(d.Request, &ask) // empty for an erased session
	at := session.ActiveTurn{SessionID: d.SessionID}
	r.Link(s.Server, &at)
	return decided{ApprovalID: d.ApprovalID, Kind: d.Kind, KeyName: ask.KeyName, Status: d.Status, DecidedAt: d.DecidedAt,
		DecidedBy: d.DecidedBy,
		Pattern:   d.Pattern, SessionID: d.SessionID, EventsURL: at.EventsURL, Already: d.Already}
}
