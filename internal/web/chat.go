package web

import (
	"fmt"
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/skill"
)

// chatPage is the playground. Its script reads the conversation through the API.
func (a *App) chatPage(w http.ResponseWriter, p *page) error {
	if id := p.PathValue("session"); id != "" {
		if _, ok := request.ID(id); !ok {
			return fault.New(fault.SessionNotFound, "The session does not exist in this workspace.")
		}
	}
	agents, err := a.agentChoices(p)
	if err != nil {
		return err
	}
	return a.render(w, p, "chat", agents)
}

// agentChoice is an agent, or its draft, to which the playground can send a message.
type agentChoice struct {
	Name           string
	Agent, Version string // members of the message; "": left out
	Label          string
}

// agentChoices lists the agents, the default agent first. A member who cannot change the
// configuration gets no drafts, which the API would reject.
func (a *App) agentChoices(p *page) ([]agentChoice, error) {
	list, err := a.srv.Agents.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return nil, err
	}
	var choices []agentChoice
	for _, e := range list {
		name := e.Name
		if e.Default {
			name = ""
		}
		choices = append(choices, agentChoice{e.Name, name, "", fmt.Sprintf("%s v%d", e.Name, e.Published)})
		if e.HasDraft && p.Can("config:write") {
			choices = append(choices, agentChoice{e.Name, name, "draft", e.Name + " draft"})
		}
	}
	return choices, nil
}

// chatOptions are what a message can name.
type chatOptions struct {
	Skills  []skillOption `json:"skills"`
	Secrets []string      `json:"secrets"`
}

type skillOption struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Inputs      []skill.Input `json:"inputs"` // null: any input
}

// chatOptions returns the skills with their contracts and the names of the secrets.
func (a *App) chatOptions(w http.ResponseWriter, p *page) error {
	o := chatOptions{Skills: []skillOption{}, Secrets: []string{}}
	skills, err := a.srv.Skills.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	for _, s := range skills {
		if s.Status != skill.Active {
			continue
		}
		option := skillOption{Name: s.Name, Description: s.Description}
		if s.Contract != nil {
			option.Inputs = append([]skill.Input{}, s.Contract.Inputs...)
		}
		o.Skills = append(o.Skills, option)
	}
	if a.srv.Vault != nil {
		secrets, err := a.srv.Vault.List(p.Context(), p.Workspace.ID)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if s.HasValue {
				o.Secrets = append(o.Secrets, s.Name)
			}
		}
	}
	return server.WriteJSON(w, http.StatusOK, o)
}
