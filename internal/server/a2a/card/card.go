// Package card has the agent cards of A2A.
package card

import (
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/workspace"
)

// object is JSON that is assembled by hand, as cards are; only programs read it.
type object = map[string]any

// Agent is the content of an agent card.
type Agent struct {
	Name, Description string
	Skills            []Skill
}

// Stranger is the card for a client without a key: it contains nothing of any workspace.
var Stranger = Agent{Name: "Parley", Description: "An agent behind Parley. Ask with a key for the card of your workspace's own.",
	Skills: []Skill{talk}}

// Of returns the card of a workspace: its name, and the skills that callers can start.
func Of(w workspace.Workspace, skills []skill.Entry) Agent {
	agent := Agent{Name: w.Name, Description: "The agent of the workspace " + w.Slug + ".", Skills: []Skill{talk}}
	for _, e := range skills {
		if e.Status == skill.Active {
			agent.Skills = append(agent.Skills, skillOf(e))
		}
	}
	return agent
}

// Encode encodes a card for a version. Without a version the card has the members of both.
func (a Agent) Encode(url, release, version string) map[string]any {
	card := object{
		"name": a.Name, "description": a.Description, "version": release, "skills": a.Skills,
		"defaultInputModes": []string{task.TextType, task.JSONType}, "defaultOutputModes": []string{task.TextType, task.JSONType},
	}
	capabilities := object{"streaming": true, "pushNotifications": true}
	scheme := object{"description": "An API key of a workspace, with the scope a2a."}
	card["capabilities"], card["securitySchemes"] = capabilities, object{"apiKey": scheme}
	if version != "0.3" {
		card["supportedInterfaces"] = []object{
			{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
			{"url": url + "/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
			{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
		}
		capabilities["extendedAgentCard"] = true
		scheme["httpAuthSecurityScheme"] = object{"scheme": "Bearer", "description": scheme["description"]}
		card["securityRequirements"] = []object{{"schemes": object{"apiKey": object{"list": []string{}}}}}
	}
	if version != "1.0" {
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
