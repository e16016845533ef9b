package openai

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/store/skill"
)

// model is an OpenAI model: a workspace, or one of its agents or skills.
type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Description string `json:"description,omitempty"` // an extension
}

// models returns the models of the key's workspace.
func (s *api) models(r *server.Request) ([]model, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	w := r.Caller.Workspace
	skills, err := s.Skills.List(ctx, w.ID)
	if err != nil {
		return nil, err
	}
	agents, err := s.Agents.List(ctx, w.ID)
	if err != nil {
		return nil, err
	}
	list := []model{{ID: w.Slug, Object: "model", Created: w.CreatedAt.Unix(), OwnedBy: "parley", Description: w.Name}}
	for _, a := range agents {
		if !a.Default {
			list = append(list, model{w.Slug + "/" + a.Name, "model", a.CreatedAt.Unix(), "parley", "The agent " + a.Name + "."})
		}
	}
	for _, k := range skills {
		if k.Status == skill.Active {
			list = append(list, model{w.Slug + "/" + k.Name, "model", k.CreatedAt.Unix(), "parley", k.Description})
		}
	}
	return list, nil
}

func (s *api) listModels(w http.ResponseWriter, r *server.Request) error {
	list, err := s.models(r)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", list})
}

func (s *api) getModel(w http.ResponseWriter, r *server.Request) error {
	list, err := s.models(r)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.ID == r.PathValue("model") {
			return server.WriteJSON(w, http.StatusOK, m)
		}
	}
	return chat.NoModel(r.PathValue("model"), r.Caller.Workspace)
}
