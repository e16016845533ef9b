package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/card"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// serveCard responds with the agent card of the key's workspace, or without a key with one that
// only describes the authentication.
func (s *api) serveCard(w http.ResponseWriter, r *server.Request) error {
	version := "" // without one, or with another, the card has the members of both
	if v, ok := call.VersionOf(r.Request); ok && v != nil {
		version = v.Name
	}
	agent, cache := card.Stranger, "public, max-age=300"
	if s.BaseURL == "" { // the request's own headers determine the address
		cache = "private, max-age=300"
	}
	if s.noCard || len(r.Header.Values("Authorization")) > 0 {
		caller, err := s.Authorize(w, r.Request, server.Requirement{Scope: apikey.A2A, Class: ratelimit.Calls})
		if err != nil {
			return err
		}
		ctx, stop := s.Brief(r.Context())
		defer stop()
		if agent, err = workspaceCard(ctx, s.Server, caller); err != nil {
			return err
		}
		cache = "private, max-age=60"
	}
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, err := server.Encode(agent.Encode(s.Base(r.Request)+Path, s.Version, version))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	h := w.Header()
	h.Set("Cache-Control", cache)
	h.Set("Vary", "Authorization, A2A-Version")
	h.Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), h.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	server.WriteBody(w, http.StatusOK, body)
	return nil
}

// extendedCard returns the card of the caller's workspace.
func extendedCard(c *call.Call) (any, error) {
	ctx, stop := c.BriefContext()
	defer stop()
	agent, err := workspaceCard(ctx, c.Server, c.Caller)
	if err != nil {
		return nil, err
	}
	return agent.Encode(c.Base+Path, c.Server.Version, c.Version.Name), nil
}

// workspaceCard returns the card of a caller's workspace.
func workspaceCard(ctx context.Context, s *server.Server, caller server.Caller) (card.Agent, error) {
	list, err := s.Skills.List(ctx, caller.Workspace.ID)
	return card.Of(caller.Workspace, list), err
}
