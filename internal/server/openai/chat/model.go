package chat

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/workspace"
)

// resolveModel finds the workspace, agent or skill of the model's name. An agent comes before a
// skill of the same name.
func (s Service) resolveModel(r *server.Request, q requestBody, given map[string]json.RawMessage) error {
	slug, name, calls := strings.Cut(q.model, "/")
	if slug != r.Caller.Workspace.Slug {
		return NoModel(q.model, r.Caller.Workspace)
	}
	if !calls {
		return nil
	}
	ctx, cancel := s.Brief(context.WithoutCancel(r.Context()))
	defer cancel()
	switch _, err := s.Agents.Find(ctx, r.Caller.Workspace.ID, name); {
	case err == nil:
		r.Names["agent"], given["agent"] = "model", request.QuoteText(name)
		return nil
	case fault.From(err) == nil:
		return err
	}
	r.Names["skill"] = "model"
	k, err := s.Skills.Active(ctx, r.Caller.Workspace.ID, name)
	if f := fault.From(err); f != nil && f.Code == fault.UnknownSkill {
		unknown := NoModel(q.model, r.Caller.Workspace)
		for _, skill := range f.Detail.Candidates {
			unknown.Detail.Candidates = append(unknown.Detail.Candidates, slug+"/"+skill)
		}
		return unknown
	}
	if err != nil {
		return err
	}
	given["skill"] = request.QuoteText(k.Name)
	if _, ok := given["input"]; !ok {
		given["input"] = server.SkillInput(k, q.text)
	}
	return nil
}

// NoModel returns the error for a name that is not a model of the workspace. It is the same for names
// of other workspaces and for unknown names.
func NoModel(name string, own workspace.Workspace) *fault.Error {
	return &fault.Error{Code: fault.WorkspaceNotFound, Param: "model",
		Message: "Unknown model \"" + request.Short(name) + "\". This key has the model \"" + own.Slug + "\", and \"" + own.Slug +
			"/SKILL\" or \"" + own.Slug + "/AGENT\" for each skill and agent."}
}
