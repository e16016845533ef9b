package sessions

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// postedResults is the response to results of calls.
type postedResults struct {
	SessionID uuid.UUID `json:"session_id"`
	TurnID    uuid.UUID `json:"turn_id"`
	Accepted  []string  `json:"accepted"` // calls whose results are new
	Pending   []string  `json:"pending"`  // calls for whose results the turn still waits
	EventsURL string    `json:"events_url"`
}

// postToolResults stores results of the caller's own tools, for a caller that may read their turn.
func (s *api) postToolResults(w http.ResponseWriter, r *call.Request) error {
	return s.postResults(w, r, (*request.Checks).ToolResults, func(ctx context.Context, results []turn.ToolResult) (session.Posted, error) {
		id, err := r.Session(s.Server)
		if err != nil {
			return session.Posted{}, err
		}
		_, p, err := s.ContinueTurn(ctx, r.Caller, server.Results{Session: id, List: results})
		return p, err
	})
}

// postLaterResult stores the result of a call that the server of a tool has accepted.
func (s *api) postLaterResult(w http.ResponseWriter, r *call.Request) error {
	return s.postResults(w, r, func(c *request.Checks, body []request.Member) []turn.ToolResult {
		res := c.LaterResult(body)
		res.ToolUseID = r.PathValue("toolUseId")
		return []turn.ToolResult{res}
	}, func(ctx context.Context, results []turn.ToolResult) (session.Posted, error) {
		return s.Turns.PostLater(ctx, r.Caller.Workspace.ID, r.Caller.Key, results[0])
	})
}

func (s *api) postResults(w http.ResponseWriter, r *call.Request, parse func(*request.Checks, []request.Member) []turn.ToolResult,
	post func(context.Context, []turn.ToolResult) (session.Posted, error),
) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.Query().Checks
	results := parse(c, body)
	key := c.Once(r.Header.Values("Idempotency-Key"))
	if err := c.Err(); err != nil {
		return err
	}
	return call.Once(s.Server, w, r, key, []any{r.URL.Path, results}, func(ctx context.Context) (any, error) {
		p, err := post(ctx, results)
		if err != nil {
			return nil, err
		}
		at := session.ActiveTurn{SessionID: p.Session}
		r.Link(s.Server, &at)
		return postedResults{SessionID: p.Session, TurnID: p.Turn, Accepted: orEmpty(p.Stored), Pending: orEmpty(p.Open),
			EventsURL: at.EventsURL}, nil
	})
}

// orEmpty returns a list that is not null in JSON.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
