// Package openai serves OpenAI's Chat Completions and Responses APIs: their clients need a base URL
// and a key. The workspace is a model, and so is each of its skills.
//
// It promises: a request for approval is a text that the next message answers, and no secret passes
// through here. Package chat serves a message for both APIs, with the words of package words;
// completions and responses encode its answer.
package openai

import (
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/openai/completions"
	"github.com/parley-server/parley/internal/server/openai/responses"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// api handles the requests.
type api struct{ *server.Server }

// New returns the handlers by their paths. {model...} is the rest of a path.
func New(srv *server.Server) server.Routes {
	s := &api{srv.WithNullParams()}
	read := func(do chat.Handler) http.Handler {
		return s.HandleMethods(map[string]server.Operation{http.MethodGet: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: do}})
	}
	send := func(do chat.Handler) http.Handler {
		return s.HandleMethods(map[string]server.Operation{http.MethodPost: {Scope: apikey.Chat, Class: ratelimit.Calls,
			Serve: chat.Plainly(do)}})
	}
	routes := make(server.Routes)
	service := chat.Service{Server: s.Server}
	stored := s.HandleMethods(map[string]server.Operation{
		http.MethodGet:    {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: responses.Retrieve(service)},
		http.MethodDelete: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: responses.Delete(service)},
	})
	for _, base := range []string{"/openai/v1", "/v1"} { // some clients append only the /v1 themselves
		routes[base+"/models"] = read(s.listModels)
		routes[base+"/models/{model...}"] = read(s.getModel)
		routes[base+"/chat/completions"] = send(completions.Handler(service))
		routes[base+"/completions"] = send(completions.TextHandler(service))
		routes[base+"/responses/{responseId}"] = stored
		routes[base+"/responses/{responseId}/cancel"] = send(responses.Cancel(service))
		routes[base+"/responses"] = send(responses.Handler(service))
		routes[base] = s.nothing(base)
		routes[base+"/"] = s.nothing(base)
	}
	routes["/openai"] = s.nothing("/openai/v1")
	routes["/openai/"] = s.nothing("/openai/v1")
	return routes
}

// paths are the paths below the base.
const paths = "GET models, GET models/{model}, POST chat/completions, POST completions, POST responses, GET and DELETE responses/{id}, " +
	"and POST responses/{id}/cancel"

// nothing rejects requests for paths that do not exist.
func (s *api) nothing(base string) http.Handler {
	return s.Handler(func(_ http.ResponseWriter, r *http.Request) error {
		what := "No such path."
		if strings.HasSuffix(r.URL.Path, "/embeddings") {
			what = "This server makes embeddings for its own search alone. Send embeddings to their provider."
		}
		return fault.New(fault.RouteNotFound, "%s Below %s there are %s.", what, base, paths)
	})
}
