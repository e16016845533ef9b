// Package aisdk serves the UI message stream of the AI SDK, for useChat and its relatives. A chat
// is a session under the chat's id, an answer a turn, and a tool approval a question of that turn.
//
// It promises: only the last message of a request counts, and the approvals that it answers are
// looked up, because a client can forge its history; a resumed stream repeats the whole turn,
// because the client throws on a part whose start it has not received; no secret passes through
// here.
package aisdk

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
		"/api/v1/workspaces/{id}/ui/chat": s.HandleMethods(map[string]server.Operation{
			http.MethodPost: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: s.sendMessage}}),
		"/api/v1/workspaces/{id}/ui/chat/{chatId}/stream": s.HandleMethods(map[string]server.Operation{
			http.MethodGet:    {Scope: apikey.SessionsRead, Class: ratelimit.Calls, Serve: s.resumeStream},
			http.MethodDelete: {Scope: apikey.Chat, Class: ratelimit.Calls, Serve: s.cancelTurn}}),
	}
}

// setStreamHeader names the protocol of the stream.
func setStreamHeader(h http.Header) { h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1") }
