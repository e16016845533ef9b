// Package openai serves OpenAI's Chat Completions and Responses APIs: their clients need a base URL
// and a key. The workspace is a model, and so is each of its skills.
//
// It promises: it uses only the last user message of a request, in the session that the client
// names; it ignores unknown fields and lists them in a header; a request for approval is a text
// that the next message answers; no secret passes through here.
package openai

import (
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// api handles the requests.
type api struct{ *server.Server }

type handler = func(http.ResponseWriter, *server.Request) error

// New returns the handlers by their paths. {model...} is the rest of a path.
func New(srv *server.Server) server.Routes {
	s := &api{srv.WithNullParams()}
	read := func(do handler) http.Handler {
		return s.HandleMethods(map[string]server.Operation{http.MethodGet: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: do}})
	}
	send := func(do handler) http.Handler {
		return s.HandleMethods(map[string]server.Operation{http.MethodPost: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: plainly(do)}})
	}
	routes := make(server.Routes)
	for _, base := range []string{"/openai/v1", "/v1"} { // some clients append only the /v1 themselves
		routes[base+"/models"] = read(s.listModels)
		routes[base+"/models/{model...}"] = read(s.getModel)
		routes[base+"/chat/completions"] = send(s.complete)
		routes[base+"/responses"] = send(s.respond)
		routes[base] = s.nothing(base)
		routes[base+"/"] = s.nothing(base)
	}
	routes["/openai"] = s.nothing("/openai/v1")
	routes["/openai/"] = s.nothing("/openai/v1")
	return routes
}

// nothing rejects requests for paths that do not exist.
func (s *api) nothing(base string) http.Handler {
	return s.Handler(func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.RouteNotFound, "No such path. Below %s there are GET models, GET models/{model}, POST chat/completions and POST responses.", base)
	})
}
