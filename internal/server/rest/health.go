package rest

import (
	"errors"
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
)

// ErrStopping is an error of ready: the process stops in order, which its log has already.
var ErrStopping = errors.New("running turns finish their steps first")

var healthy = []byte(`{"status":"ok"}` + "\n")

// getHealth reports that the process is alive.
func (s *api) getHealth(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	server.WriteBody(w, http.StatusOK, healthy)
	return nil
}

// getReady reports whether the process can work; otherwise the error names the failed check.
func (s *api) getReady(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	err := s.isReady(ctx)
	if !errors.Is(err, ErrStopping) {
		s.readiness.Note(r.Context(), err)
	}
	if err != nil {
		if f := fault.From(err); f != nil {
			return f
		}
		return fault.New(fault.Unavailable, "The service is not ready.")
	}
	server.WriteBody(w, http.StatusOK, healthy)
	return nil
}
