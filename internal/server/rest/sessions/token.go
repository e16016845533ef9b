package sessions

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
)

// tokenRequest is the body of a request for a browser token.
type tokenRequest struct {
	limit apikey.Limit
	life  time.Duration
}

var lifeField = request.Field[tokenRequest]{Name: "expires_in", Parse: func(c *request.Checks, at string, raw json.RawMessage,
	t *tokenRequest) {
	t.life = time.Duration(c.Integer(at, raw, 1, int(apikey.MaxTokenLife/time.Second))) * time.Second
}}

var agentField = request.Field[tokenRequest]{Name: "agent", Parse: func(c *request.Checks, at string, raw json.RawMessage,
	t *tokenRequest) {
	t.limit.Agent = c.Word(at, raw, request.MaxName)
}}

// sessionTokenFields and userTokenFields are the fields of requests for tokens.
var (
	sessionTokenFields = []request.Field[tokenRequest]{lifeField, agentField}
	userTokenFields    = []request.Field[tokenRequest]{lifeField, agentField,
		{Name: "user", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *tokenRequest) {
			t.limit.User = c.Word(at, raw, request.MaxUser)
		}}}
)

// createSessionToken creates a browser token for one session.
func (s *api) createSessionToken(w http.ResponseWriter, r *call.Request) error {
	t, err := parseToken(w, r, sessionTokenFields)
	if err != nil {
		return err
	}
	if t.limit.Session, err = r.Session(s.Server); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	if _, err := s.Sessions.Head(ctx, r.Caller.Workspace.ID, t.limit.Session); err != nil {
		return err
	}
	return s.createToken(w, r, t)
}

// createUserToken creates a browser token for the sessions of one user, and for new ones.
func (s *api) createUserToken(w http.ResponseWriter, r *call.Request) error {
	t, err := parseToken(w, r, userTokenFields)
	if err != nil {
		return err
	}
	return s.createToken(w, r, t)
}

// parseToken parses a body, which may be absent if every field has a default.
func parseToken(w http.ResponseWriter, r *call.Request, fields []request.Field[tokenRequest]) (tokenRequest, error) {
	t := tokenRequest{life: apikey.DefaultTokenLife}
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return t, err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return t, err
	}
	c := r.Query().Checks
	given := request.ParseMembers(c, "", body, &t, fields, nil)
	if len(fields) == len(userTokenFields) && (!given["user"] || c.Err() == nil && t.limit.User == "") {
		c.Add(fault.Violation{Param: "/user", Rule: "required", Message: "user is missing: the end user whose sessions the token is for."})
	}
	return t, c.Err()
}

// newToken is a browser token with its text, which only this response has.
type newToken struct {
	Text string `json:"token"`
	apikey.Token
}

func (s *api) createToken(w http.ResponseWriter, r *call.Request, t tokenRequest) error {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	if t.limit.Agent != "" {
		if _, err := s.Agents.Resolve(ctx, r.Caller.Workspace.ID, t.limit.Agent, agent.Published); err != nil {
			return err
		}
	}
	made, text, err := s.Keys.CreateToken(actor.With(ctx, s.Actor(w, r.Request, r.Caller)), r.Caller.Principal, t.limit, t.life)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusCreated, newToken{text, made})
}

// tokenPage is a page of browser tokens.
type tokenPage struct {
	Data       []apikey.Token `json:"data"`
	HasMore    bool           `json:"has_more"`
	NextCursor *string        `json:"next_cursor"`
}

// listTokens returns the browser tokens that the caller's key has made and that can be used now.
// The scope admin lists those of all keys.
func (s *api) listTokens(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.Query()
	q := apikey.TokenQuery{By: makerFilter(r.Caller), Limit: p.Limit(20), Cursor: p.Cursor(), Session: p.ID("session_id"),
		User: p.OptionalText("user")}
	if err := p.Err(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	list, next, err := s.Keys.Tokens(ctx, r.Caller.Workspace.ID, q)
	if err != nil {
		return err
	}
	page := tokenPage{Data: list, HasMore: next != ""}
	if page.HasMore {
		page.NextCursor = &next
	}
	return server.WriteJSON(w, http.StatusOK, page)
}

// makerFilter returns the key whose tokens the caller may see and revoke, "" for all.
func makerFilter(c server.Caller) string {
	if c.Scopes.Allows(apikey.Admin) {
		return ""
	}
	return c.Key
}

// revokeToken ends a browser token now.
func (s *api) revokeToken(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	id := r.PathValue("tokenId")
	t, err := s.Keys.RevokeToken(actor.With(ctx, s.Actor(w, r.Request, r.Caller)), r.Caller.Workspace.ID, id, makerFilter(r.Caller))
	if errors.Is(err, apikey.ErrNotFound) {
		return fault.New(fault.ObjectNotFound,
			"No browser token %.40q that can be used now. GET …/tokens lists those that your key has made.", id)
	}
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, t)
}
