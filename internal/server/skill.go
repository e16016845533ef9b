package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/turn"
)

// InvokeSkill makes the text beside a skill's name its input. ignored reports that the request
// already has an input and the text is not used.
func (s *Server) InvokeSkill(r *Request, req *turn.Request, text string) (ignored bool, err error) {
	if req.Skill == "" || strings.TrimSpace(text) == "" {
		return false, nil
	}
	if req.Input != nil {
		return true, nil
	}
	ctx, cancel := s.Brief(context.WithoutCancel(r.Context()))
	defer cancel()
	k, err := s.Skills.Active(ctx, r.Caller.Workspace.ID, req.Skill)
	if fault.From(err) != nil { // a repeated message may be known nevertheless
		return false, nil
	}
	if err != nil {
		return false, err
	}
	input := SkillInput(k, text)
	if len(input) > request.MaxInput {
		var c request.Checks
		c.Longer("/command", "bytes", request.MaxInput)
		return false, c.Err()
	}
	req.Input = make(map[string]json.RawMessage)
	for _, m := range request.Members(input) {
		req.Input[m.Name] = m.Value
	}
	return false, nil
}

// SkillInput returns a text as the input of a skill: a JSON object is the input itself, and any
// other text is the value of the one input that accepts text.
func SkillInput(k skill.Skill, text string) json.RawMessage {
	input := json.RawMessage(strings.TrimSpace(text))
	if len(input) == 0 || input[0] != '{' || !json.Valid(input) {
		input, _ = json.Marshal(map[string]string{onlyTextInput(k): text})
	}
	return input
}

// onlyTextInput returns the input for a text: the only required one that accepts text, else the
// only one that accepts text. For a skill without declared inputs it is "message".
func onlyTextInput(k skill.Skill) string {
	if k.Contract == nil {
		return "message"
	}
	var required, all []string
	for _, in := range k.Contract.Inputs {
		if in.Type != skill.String {
			continue
		}
		if all = append(all, in.Name); in.Required {
			required = append(required, in.Name)
		}
	}
	switch {
	case len(required) == 1:
		return required[0]
	case len(required) == 0 && len(all) == 1:
		return all[0]
	}
	return "message" // the violations describe the input
}
