package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/schema"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/tool"
)

// CallerTool is a tool of the caller: the model may call it, and the caller runs it.
type CallerTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema,omitempty"` // of an object; nil: it has no members
}

// noInput is the schema of a tool without input.
var noInput = json.RawMessage(`{"type":"object","properties":{}}`)

// encodeCallerTools checks the tools of a message and returns them as they are stored.
func (s *Service) encodeCallerTools(ctx context.Context, workspace uuid.UUID, tools []CallerTool) (json.RawMessage, error) {
	var violations []fault.Violation
	if s.cfg.CheckNames != nil {
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.Name
		}
		var err error
		if violations, err = s.cfg.CheckNames(ctx, workspace, names); err != nil {
			return nil, err
		}
	}
	for i, t := range tools {
		at := fmt.Sprintf("/tools/%d", i)
		switch {
		case permission.IsTool(t.Name) || agent.IsReserved(t.Name):
			violations = append(violations, fault.Violation{Param: at + "/name", Rule: "unique",
				Message: fmt.Sprintf("The agent has a tool %s of its own. Use another name.", t.Name)})
		case slices.ContainsFunc(tools[:i], func(other CallerTool) bool { return other.Name == t.Name }):
			violations = append(violations, fault.Violation{Param: at + "/name", Rule: "unique",
				Message: fmt.Sprintf("Another tool of the message has the name %s, too.", t.Name)})
		}
		_, err := compileCallerTool(t)
		if bad, ok := errors.AsType[*schema.Error](err); ok {
			violations = append(violations, fault.Violation{Param: at + "/input_schema" + bad.Path, Rule: "schema", Message: bad.Reason})
		} else if err != nil {
			return nil, err
		}
	}
	if len(violations) > 0 {
		return nil, fault.Invalid(violations...)
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		return nil, fmt.Errorf("encode the caller's tools: %w", err)
	}
	return raw, nil
}

// callerTool offers a CallerTool to the model.
type callerTool struct {
	CallerTool
	input *schema.Schema
}

func compileCallerTool(t CallerTool) (callerTool, error) {
	if t.Schema == nil {
		t.Schema = noInput
	}
	var root struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(t.Schema, &root) != nil || root.Type != "object" {
		return callerTool{}, &schema.Error{Path: "/type", Reason: `The input of a tool is an object: its schema needs "type": "object".`}
	}
	compiled, err := schema.Compile(t.Schema)
	return callerTool{t, compiled}, err
}

// addCallerTools adds the caller's tools of a turn to its agent, whose own tools take precedence.
// The caller decides about their calls, so none needs an approval. A tool that the rules deny by its
// name is not offered.
func addCallerTools(ag *agent.Agent, raw json.RawMessage, rules permission.Rules) error {
	if raw == nil {
		return nil
	}
	var defined []CallerTool
	if err := json.Unmarshal(raw, &defined); err != nil {
		return fmt.Errorf("read the caller's tools: %w", err)
	}
	added := make(map[string]bool, len(defined))
	for _, d := range defined {
		if slices.ContainsFunc(ag.Tools, func(t tool.Tool) bool { return t.Spec().Name == d.Name }) {
			continue
		}
		t, err := compileCallerTool(d)
		if err != nil {
			return fmt.Errorf("read the caller's tool %s: %w", d.Name, err)
		}
		var offered tool.Tool = t
		if reason := rules.Denied(d.Name); reason != "" && ag.Permit != nil {
			offered = deniedTool{t, reason}
		}
		ag.Tools, added[d.Name] = append(slices.Clip(ag.Tools), offered), true
	}
	if permit := ag.Permit; permit != nil {
		ag.Permit = func(ctx context.Context, name string, input json.RawMessage) (agent.Verdict, error) {
			v, err := permit(ctx, name, input)
			if added[name] {
				v = agent.Verdict{Denied: v.Denied}
			}
			return v, err
		}
	}
	return nil
}

// Spec implements tool.Tool.
func (t callerTool) Spec() tool.Spec {
	return tool.Spec{Name: t.Name, Description: t.Description, Schema: t.Schema, Caller: true}
}

// Call implements tool.Tool. The agent does not use it.
func (t callerTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, tool.Later{}
}

// Check implements tool.Checker.
func (t callerTool) Check(input json.RawMessage) (wrong string) { return t.input.Misfit(input) }
