package httpapi

import (
	"net/http"

	"github.com/parley-server/parley/internal/fault"
)

var healthy = []byte(`{"status":"ok"}` + "\n")

// health says that the process is alive.
func (s *server) health(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	writeBody(w, http.StatusOK, healthy)
	return nil
}

// ready says whether the process can serve requests.
func (s *server) ready(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	if err := s.cfg.Ready(ctx); err != nil {
		s.cfg.Log.WarnContext(ctx, "not ready", "err", err)
		return fault.New(fault.Unavailable, "The service is not ready.")
	}
	writeBody(w, http.StatusOK, healthy)
	return nil
}
