// Package aisdk speaks the UI message stream of the AI SDK, which useChat and its relatives
// read. A chat is a session under the chat's id, an answer a turn, and a tool approval a
// question of that turn.
//
// It promises: of the messages that such a client sends along only the last one counts, and
// what it answers is looked up, for a client can forge its history; a stream that is resumed
// tells the whole turn again, since the client throws on a piece whose beginning it has not
// seen; no secret travels through here.
package aisdk

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
		"/api/v1/workspaces/{id}/ui/chat": s.HandleMethods(map[string]server.Operation{
			http.MethodPost: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: s.send}}),
		"/api/v1/workspaces/{id}/ui/chat/{chatId}/stream": s.HandleMethods(map[string]server.Operation{
			http.MethodGet:    {Scope: apikey.SessionsRead, Class: ratelimit.Calls, Serve: s.resume},
			http.MethodDelete: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: s.cancel}}),
	}
}

// header says which protocol the stream speaks.
func header(h http.Header) { h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1") }
