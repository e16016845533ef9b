package openai

import (
	"encoding/json"
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/workspace"
)

// model is an OpenAI model: a workspace, or one of its skills.
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
	list := []model{{ID: w.Slug, Object: "model", Created: w.CreatedAt.Unix(), OwnedBy: "parley", Description: w.Name}}
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
	return noModel(r.PathValue("model"), r.Caller.Workspace)
}

// noModel returns the error for a name that is not the workspace's. It is the same for names of
// other workspaces and for unknown names.
func noModel(name string, own workspace.Workspace) *fault.Error {
	return &fault.Error{Code: fault.WorkspaceNotFound, Param: "model",
		Message: "Unknown model \"" + request.Short(name) + "\". This key has the model \"" + own.Slug + "\", and \"" + own.Slug + "/SKILL\" for each skill."}
}

// invoke turns a message into a call of a skill, with the text as its input.
func invoke(k skill.Skill, text string, given map[string]json.RawMessage) {
	given["skill"] = request.QuoteText(k.Name)
	if _, ok := given["input"]; !ok {
		given["input"] = server.SkillInput(k, text)
	}
}
