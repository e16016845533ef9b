package card

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/store/skill"
)

// Skill is a skill on a card, in both versions.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
	InputModes  []string `json:"inputModes,omitempty"`
}

// talk is the skill of every agent.
var talk = Skill{ID: "conversation", Name: "Conversation", Description: "Answers questions and does what it is asked to, in the " +
	"conversation that contextId names.",
	Tags: []string{"chat"}, Examples: []string{"What can you do?", "Sum up our conversation so far."}}

// skillOf describes a skill to other agents. Cards have no schema of inputs, so the description
// names them.
func skillOf(e skill.Entry) Skill {
	var words strings.Builder
	words.WriteString(e.Description)
	if e.Contract != nil && len(e.Contract.Inputs) > 0 {
		words.WriteString("\nInputs:")
		for _, in := range e.Contract.Inputs {
			words.WriteString("\n- " + in.Name + ": " + kindOf(in))
			if in.Description != "" {
				words.WriteString(". " + in.Description)
			}
		}
	}
	example, _ := json.Marshal(map[string]any{"skill": e.Name, "input": e.Contract.Example()}) // these values cannot fail
	return Skill{ID: e.Name, Name: e.Name, Description: words.String(), Tags: []string{"skill"}, Examples: []string{string(example)},
		InputModes: []string{task.JSONType}}
}

func kindOf(in skill.Input) string {
	kind := cmp.Or(in.Format, string(in.Type))
	switch {
	case in.Type == skill.Enum:
		kind = "one of " + strings.Join(in.Values, ", ")
	case in.Type == skill.Array && in.Items != nil:
		kind = "array, of each " + kindOf(*in.Items)
	}
	switch {
	case in.Required:
		kind += ", required"
	case in.Default != nil:
		kind += ", else " + string(in.Default)
	}
	return kind
}
