package rest

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest/call"
)

// routes returns the operations by their paths.
func (s *api) routes(ops []*operation) server.Routes {
	paths := make(map[string]map[string]server.Operation)
	for _, op := range ops {
		if paths[op.Path] == nil {
			paths[op.Path] = make(map[string]server.Operation)
		}
		paths[op.Path][op.Method] = serverOperation(op)
	}
	routes := make(server.Routes)
	for path, methods := range paths {
		routes[path] = s.HandleMethods(methods)
	}
	return routes
}

// serverOperation returns the operation as package server defines it.
func serverOperation(op *operation) server.Operation {
	return server.Operation{Public: op.Public(), Scope: op.Scope, Class: op.Class, Tokens: op.Tokens, Serve: func(w http.ResponseWriter,
		r *server.Request) error {
		return op.Handle(w, &call.Request{Request: r.Request, Operation: op.ID, Params: op.Params, Caller: r.Caller})
	}}
}
