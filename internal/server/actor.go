package server

import (
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Actor returns the caller of a request as the log of changes names it.
func (s *Server) Actor(w http.ResponseWriter, r *http.Request, c Caller) actor.Actor {
	if a, ok := actor.From(r.Context()); ok { // a command inside this process
		return a
	}
	a := actor.Actor{Kind: actor.Key, ID: c.Key, Name: c.Name, Address: s.ClientAddress(r).String(), RequestID: w.Header().Get("X-Request-Id")}
	if strings.HasPrefix(a.ID, apikey.MemberPrefix) {
		a.Kind = actor.Member
	}
	return a
}
