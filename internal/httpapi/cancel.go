package httpapi

import "net/http"

// canceled is the answer to a cancel call.
type canceled struct {
	Data struct {
		Canceled     bool   `json:"canceled"`
		HaltDeferred bool   `json:"runner_halt_deferred"`
		Reason       string `json:"reason,omitempty"`
	} `json:"data"`
}

// cancelTurn ends the session's turn. Where there is none, that is no error.
func (s *server) cancelTurn(w http.ResponseWriter, r *request) error {
	if err := r.bare(); err != nil {
		return err
	}
	id, err := r.session()
	if err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	got, err := s.cfg.Turns.Cancel(ctx, r.workspace.ID, id)
	if err != nil {
		return err
	}
	var body canceled
	body.Data.Canceled, body.Data.HaltDeferred = got.Canceled, got.HaltDeferred
	if !got.Canceled {
		body.Data.Reason = "not_in_progress"
	}
	return writeJSON(w, http.StatusOK, body)
}
