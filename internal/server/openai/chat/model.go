package chat

import (
	"encoding/json"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/workspace"
)

// NoModel returns the error for a name that is not the workspace's. It is the same for names of
// other workspaces and for unknown names.
func NoModel(name string, own workspace.Workspace) *fault.Error {
	return &fault.Error{Code: fault.WorkspaceNotFound, Param: "model",
		Message: "Unknown model \"" + request.Short(name) + "\". This key has the model \"" + own.Slug + "\", and \"" + own.Slug + "/SKILL\" or \"" + own.Slug + "/AGENT\" for each skill and agent."}
}

// invoke turns a message into a call of a skill, with the text as its input.
func invoke(k skill.Skill, text string, given map[string]json.RawMessage) {
	given["skill"] = request.QuoteText(k.Name)
	if _, ok := given["input"]; !ok {
		given["input"] = server.SkillInput(k, text)
	}
}
