// Package agui speaks the Agent User Interaction Protocol, which CopilotKit and the clients of
// many agent frameworks read. A thread is a session, a run what is told of a turn until it ends
// or asks; a question ends the run with an interrupt while the turn stays open, and the run
// that answers it tells the rest.
//
// It promises: of the messages that such a client sends along only the last one counts, and a
// new one is never lost in silence; all answers of a run are looked up before one is taken; a run is told with its beginning and its end, or breaks
// off; no secret travels through here.
package agui

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// api answers requests.
type api struct{ *server.Server }

// New returns the handlers by their paths.
func New(srv *server.Server) server.Routes {
	s := &api{srv}
	return server.Routes{
		"/api/v1/workspaces/{id}/ag-ui": s.HandleMethods(map[string]server.Operation{
			http.MethodPost: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: s.run}}),
	}
}
