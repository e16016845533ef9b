package sessions

import (
	"context"
	"net/http"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
)

// canceled is the response to a cancel call.
type canceled struct {
	Canceled     bool   `json:"canceled"`
	HaltDeferred bool   `json:"runner_halt_deferred"`
	Reason       string `json:"reason,omitempty"`
}

// cancelTurn cancels the session's turn. It also succeeds if none is running.
func (s *api) cancelTurn(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	query := r.Query()
	key := query.Once(r.Header.Values("Idempotency-Key"))
	if err := query.Err(); err != nil {
		return err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return err
	}
	return call.Once(s.Server, w, r, key, id, func(ctx context.Context) (any, error) {
		got, err := s.Turns.Cancel(ctx, r.Caller.Workspace.ID, id)
		body := canceled{Canceled: got.Canceled, HaltDeferred: got.HaltDeferred}
		if !got.Canceled {
			body.Reason = "not_in_progress"
		}
		return body, err
	})
}
