package sessions

import (
	"context"
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
)

// maxNote is the length of a note, in characters.
const maxNote = 2000

var feedbackFields = []string{"rating", "note"}

// rateAnswer records an opinion of an answer.
func (s *api) rateAnswer(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	c := r.Query().Checks
	f := parseFeedback(c, body)
	key := c.Once(r.Header.Values("Idempotency-Key"))
	if err := c.Err(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	turn, ok := request.ID(r.PathValue("turnId"))
	if !ok {
		return &fault.Error{Code: fault.SessionNotFound, Param: "turn_id",
			Message: "The turn id in the address is not valid. The list of messages has those that exist."}
	}
	f.Key = r.Caller.Key
	return call.Once(s.Server, w, r, key, []any{id, turn, f}, func(ctx context.Context) (any, error) {
		rated, err := s.Sessions.Rate(ctx, r.Caller.Workspace.ID, id, turn, f)
		if problem := fault.From(err); problem != nil {
			if active, ok := problem.Detail.Turn.(*session.ActiveTurn); ok {
				r.Link(s.Server, active)
			}
		}
		return rated, err
	})
}

func parseFeedback(c *request.Checks, body []request.Member) (f event.Feedback) {
	given := false
	for _, m := range body {
		param := request.Pointer(m.Name)
		switch m.Name {
		case "rating":
			given = true
			f.Rating = event.Rating(c.OneOf(param, m.Value, string(event.Good), string(event.Bad)))
		case "note":
			f.Note = c.Prose(param, m.Value, maxNote)
		default:
			c.Unknown("field", param, m.Name, feedbackFields)
		}
	}
	if !given {
		c.Add(fault.Violation{Param: "/rating", Rule: "required", Message: "rating is missing: good or bad."})
	}
	return f
}

// listFeedback returns the opinions of a session's answers.
func (s *api) listFeedback(w http.ResponseWriter, r *call.Request) error {
	if err := r.CheckBare(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	list, err := s.Sessions.Feedback(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, list)
}
