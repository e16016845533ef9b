package sessions

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
)

// getContext rebuilds the request of a step.
func (s *api) getContext(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	q := r.Query()
	nth, step := q.Number("turn"), q.Number("step")
	if err := q.Err(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	c, err := s.Turns.Context(ctx, r.Caller.Workspace.ID, id, nth, step)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, c.View())
}
