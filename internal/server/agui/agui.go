// Package agui serves the Agent User Interaction Protocol, for CopilotKit and the clients of many
// agent frameworks. A thread is a session, a run the part of a turn until its end or its next
// question; a question ends the run with an interrupt while the turn stays open, and the run that
// answers it streams the rest.
//
// It promises: only the last message of a request counts, and a new one is never dropped silently;
// all answers of a run are looked up before one is applied; a run has its start and its end, or is
// aborted; no secret passes through here.
package agui

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// api handles the requests.
type api struct{ *server.Server }

// New returns the handlers by their paths.
func New(srv *server.Server) server.Routes {
	s := &api{srv}
	return server.Routes{
		"/api/v1/workspaces/{id}/ag-ui": s.HandleMethods(map[string]server.Operation{
			http.MethodPost: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: s.runAgent}}),
	}
}
