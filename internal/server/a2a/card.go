package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/skill"
)

// object is JSON that is assembled by hand, as cards are; only programs read it.
type object = map[string]any

// agentCard is the content of an agent card.
type agentCard struct {
	name, description string
	skills            []skillCard
}

// stranger is the card for a client without a key: it contains nothing of any workspace.
var stranger = agentCard{name: "Parley", description: "An agent behind Parley. Ask with a key for the card of your workspace's own.", skills: []skillCard{talk}}

// card responds with the agent card of the key's workspace, or without a key with one that only
// describes the authentication.
func (s *api) card(w http.ResponseWriter, r *server.Request) error {
	v, ok := versionOf(r.Request)
	if !ok {
		v = ""
	}
	agent, cache := stranger, "public, max-age=300"
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
		if agent, err = s.workspaceCard(ctx, caller); err != nil {
			return err
		}
		cache = "private, max-age=60"
	}
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, err := server.Encode(agent.write(s.Base(r.Request), s.Version, v))
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
func (c *call) extendedCard() (any, error) {
	ctx, stop := c.brief()
	defer stop()
	agent, err := c.workspaceCard(ctx, c.caller)
	if err != nil {
		return nil, err
	}
	return agent.write(c.base, c.Version, c.version), nil
}

// workspaceCard returns the card of a workspace: its name, and the skills that callers can start.
func (s *api) workspaceCard(ctx context.Context, caller server.Caller) (agentCard, error) {
	list, err := s.Skills.List(ctx, caller.Workspace.ID)
	if err != nil {
		return agentCard{}, err
	}
	agent := agentCard{name: caller.Workspace.Name, description: "The agent of the workspace " + caller.Workspace.Slug + ".", skills: []skillCard{talk}}
	for _, e := range list {
		if e.Status == skill.Active {
			agent.skills = append(agent.skills, cardOf(e))
		}
	}
	return agent, nil
}

// write encodes a card for a version. Without a version the card has the members of both.
func (a agentCard) write(base, release string, v version) object {
	url := base + Path
	card := object{
		"name": a.name, "description": a.description, "version": release, "skills": a.skills,
		"defaultInputModes": []string{textType, jsonType}, "defaultOutputModes": []string{textType, jsonType},
	}
	capabilities := object{"streaming": true, "pushNotifications": true}
	scheme := object{"description": "An API key of a workspace, with the scope a2a."}
	card["capabilities"], card["securitySchemes"] = capabilities, object{"apiKey": scheme}
	if v != v03 {
		card["supportedInterfaces"] = []object{
			{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": string(v10)},
			{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": string(v03)},
		}
		capabilities["extendedAgentCard"] = true
		scheme["httpAuthSecurityScheme"] = object{"scheme": "Bearer", "description": scheme["description"]}
		card["securityRequirements"] = []object{{"schemes": object{"apiKey": object{"list": []string{}}}}}
	}
	if v != v10 {
		card["protocolVersion"] = "0.3.0"
		card["url"], card["preferredTransport"] = url, "JSONRPC"
		card["supportsAuthenticatedExtendedCard"] = true
		card["security"] = []object{{"apiKey": []string{}}}
		scheme["type"], scheme["scheme"] = "http", "bearer"
	} else {
		delete(scheme, "description")
	}
	return card
}
