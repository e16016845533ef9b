package httpapi

import (
	"net/http"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/wire"
)

var healthy = []byte(`{"status":"ok"}` + "\n")

// health says that the process is alive.
func (s *api) health(w http.ResponseWriter, r *apiRequest) error {
	if err := wire.Accepts(r.Request, wire.JSONType); err != nil {
		return err
	}
	door.WriteBody(w, http.StatusOK, healthy)
	return nil
}

// ready reports whether the process can do its work; the answer names what is lacking.
func (s *api) ready(w http.ResponseWriter, r *apiRequest) error {
	if err := wire.Accepts(r.Request, wire.JSONType); err != nil {
		return err
	}
	ctx, cancel := s.door.Brief(r.Context())
	defer cancel()
	err := s.cfg.Ready(ctx)
	s.readiness.Note(r.Context(), err)
	if err != nil {
		if f := fault.From(err); f != nil {
			return f
		}
		return fault.New(fault.Unavailable, "The service is not ready.")
	}
	door.WriteBody(w, http.StatusOK, healthy)
	return nil
}
