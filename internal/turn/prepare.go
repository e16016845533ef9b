package turn

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/origin"
	"github.com/parley-server/parley/internal/session"
	agents "github.com/parley-server/parley/internal/store/agent"
)

// promptPurpose is the purpose that a turn's prompt is sealed for.
const promptPurpose = "turn prompt"

// configScope is the scope for messages to the draft of an agent, and for links in a turn that
// connect the whole workspace to a tool server.
const configScope = "config:write"

// newTurn validates a request against its workspace, and returns the initial data of its turn.
func (s *Service) newTurn(ctx context.Context, req Request, turn uuid.UUID) (session.NewTurn, error) {
	limits := req.Limits.orLargest()
	n := session.NewTurn{
		ID: turn, Message: event.Message{Content: req.Command}, Labels: req.Labels, Named: req.Named, Key: req.Key, Scopes: req.Scopes,
		RequestHash:        req.Hash,
		MaxResponseSeconds: limits.MaxResponseSeconds, MaxTurns: limits.MaxTurns, MaxCostUSD: limits.MaxCostUSD,
		Schema: req.Schema, Secrets: req.Secrets, Behind: req.Multitask == Enqueue, Origin: origin.JSON(ctx),
	}
	if req.Options.Model.Effort != "" && !req.Workspace.CallerParameters {
		return n, fault.Invalid(fault.Violation{Param: "/effort", Rule: "requires", Expected: "caller_parameters",
			Message: "The workspace does not accept parameters of the model from callers. Leave out effort, or ask an administrator to " +
				"set caller_parameters."})
	}
	if req.Agent != "" || req.AgentVersion != agents.Published {
		if req.AgentVersion == agents.Draft && !slices.Contains(req.Scopes, configScope) {
			return n, &fault.Error{Code: fault.InsufficientScope, Param: "agent_version", Detail: fault.Detail{RequiredScope: configScope},
				Message: "This key lacks the scope " + configScope + ", so it cannot try a draft."}
		}
		var err error
		if n.AgentVersion, err = s.agents.Resolve(ctx, req.Workspace.ID, req.Agent, req.AgentVersion); err != nil {
			return n, err
		}
	}
	if req.Skill != "" {
		if err := s.sealPrompt(ctx, req, &n); err != nil {
			return n, err
		}
	}
	if len(req.Secrets) > 0 {
		if err := s.cfg.Vault.Known(ctx, req.Workspace.ID, req.Secrets); err != nil {
			return n, err
		}
	}
	if req.Schema != nil {
		if _, err := compileSchema(req.Schema); err != nil {
			return n, err
		}
	}
	if len(req.Tools) > 0 {
		var err error
		if n.Tools, err = s.encodeCallerTools(ctx, req.Workspace.ID, req.Tools); err != nil {
			return n, err
		}
	}
	if err := req.addContext(&n); err != nil {
		return n, err
	}
	if req.Callback != nil {
		if err := s.cfg.Callbacks.Check(req.Callback.URL, req.Callback.Metadata); err != nil {
			return n, err
		}
		n.Callback = uuid.Must(uuid.NewV7())
	}
	return n, nil
}

// sealPrompt finds the skill and seals the prompt made from its inputs. Only the turn's prompt
// contains the inputs, and it is removed when the turn ends.
func (s *Service) sealPrompt(ctx context.Context, req Request, n *session.NewTurn) error {
	k, err := s.cfg.Skills.Active(ctx, req.Workspace.ID, req.Skill)
	if err != nil {
		return err
	}
	if err := k.Check(req.Input); err != nil {
		return err
	}
	text, err := k.Prompt(req.Input)
	if err != nil {
		return fmt.Errorf("make the skill's prompt: %w", err)
	}
	if n.Prompt, err = s.cfg.Vault.Keyring().Seal([]byte(text), promptPurpose, n.ID.String()); err != nil {
		return fmt.Errorf("seal the prompt: %w", err)
	}
	label := k.Label(req.Input)
	n.Message = event.Message{Content: label, Label: label, Skill: k.Name}
	n.SkillVersion = k.Version
	return nil
}
