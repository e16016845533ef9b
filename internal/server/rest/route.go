package rest

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
)

// handler answers one operation. It writes only on success.
type handler func(http.ResponseWriter, *apiRequest) error

// apiRequest is a request for an operation of the document.
type apiRequest struct {
	*http.Request
	op     *operation
	caller server.Caller // zero for public operations
}

// session returns the session in the path. A malformed id is not found.
func (r *apiRequest) session() (uuid.UUID, error) {
	id, ok := request.ID(r.PathValue("sessionId"))
	if !ok {
		return uuid.Nil, fault.New(fault.SessionNotFound, "The session id in the address is not valid. "+
			"An id looks like %s; the list of sessions has those that exist.", uuid.Nil)
	}
	return id, nil
}

// query returns the query parameters.
func (r *apiRequest) query() *request.Query {
	return request.ParseQuery(&request.Checks{}, r.URL.RawQuery, r.op.Params)
}

// bare rejects query parameters, and an Accept header without JSON.
func (r *apiRequest) bare() error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	return r.query().Err()
}

// routes returns the operations by their paths.
func (s *api) routes(ops []*operation) server.Routes {
	paths := make(map[string]map[string]server.Operation)
	for _, op := range ops {
		if paths[op.Path] == nil {
			paths[op.Path] = make(map[string]server.Operation)
		}
		paths[op.Path][op.Method] = shared(op)
	}
	routes := make(server.Routes)
	for path, methods := range paths {
		routes[path] = s.HandleMethods(methods)
	}
	return routes
}

// shared returns the operation as package server defines it.
func shared(op *operation) server.Operation {
	return server.Operation{Public: op.Public(), Scope: op.Scope, Class: op.Class, Serve: func(w http.ResponseWriter, r *server.Request) error {
		return op.Handle(w, &apiRequest{Request: r.Request, op: op, caller: r.Caller})
	}}
}

// link adds the URLs that read and cancel a turn.
func (s *api) link(r *apiRequest, t *session.ActiveTurn) {
	server.Link(s.Base(r.Request), r.caller.Workspace, t)
}
