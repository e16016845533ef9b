package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/tool"
)

// Context is the request of a reply, rebuilt from the log.
type Context struct {
	Turn session.Turn
	Step int
	agent.Rebuilt

	HistoryErased bool // the request differs, and a session that this one was forked from was erased
}

// keepSetup lets an agent store the setup of its requests, and number its version.
func (s *Service) keepSetup(ag *agent.Agent, t session.Turn) {
	ag.Version = new(event.AgentVersion(t.AgentVersion))
	ag.KeepSetup = func(ctx context.Context, digest string, setup agent.Setup) error {
		return s.cfg.Sessions.KeepSetup(ctx, t.WorkspaceID, digest, func() ([]byte, error) { return json.Marshal(setup) })
	}
}

// Context rebuilds the request of a step of a session's turn. Both are numbers from 1; 0 is the newest.
func (s *Service) Context(ctx context.Context, workspace, id uuid.UUID, nth, step int) (Context, error) {
	head, err := s.cfg.Sessions.LiveHead(ctx, workspace, id)
	if err != nil {
		return Context{}, err
	}
	if head.Turn == uuid.Nil {
		return Context{}, fault.New(fault.SessionNotFound, "The session %s has no turn yet. Send a message first.", id)
	}
	t, ok, err := s.cfg.Sessions.NthTurn(ctx, workspace, id, nth)
	if err != nil {
		return Context{}, err
	}
	if !ok {
		return Context{}, notInContext("turn", "The session %s has no turn %d.", id, nth)
	}
	log, err := s.cfg.Sessions.ReadTurnLog(ctx, t)
	if err != nil {
		return Context{}, err
	}
	replies := slices.DeleteFunc(slices.Clone(log.Events), func(e event.Event) bool { return e.Kind != event.KindReply })
	if step == 0 {
		step = len(replies)
	}
	if len(replies) == 0 {
		return Context{}, notInContext("turn", "The turn has no complete reply of a model, so there is no request to show.")
	}
	if step < 1 || step > len(replies) {
		return Context{}, notInContext("step", "The turn has %d replies of a model: there is no step %d.", len(replies), step)
	}
	ag, err := s.rebuildAgent(ctx, t, replies[step-1])
	if err != nil {
		return Context{}, err
	}
	conv := agent.Conversation{Workspace: workspace, Session: id, Turn: t.ID, Log: log.Events}
	if log.HasHistory {
		past, err := s.cfg.Sessions.History(ctx, t)
		if err != nil {
			return Context{}, err
		}
		for _, p := range past {
			conv.History = append(conv.History, agent.Past(p))
		}
	}
	t.Prompt = nil // the message in the log stands for it
	if err := s.addMessageParts(ctx, t, log.HasAttachments, false, &conv); err != nil {
		return Context{}, err
	}
	c := Context{Turn: t, Step: step}
	if c.Rebuilt, _, err = ag.Rebuild(ctx, conv, step); err == nil && !c.Matches() {
		c.HistoryErased, err = s.cfg.Sessions.HistoryErased(ctx, id)
	}
	return c, err
}

// notInContext returns the error for a turn or a step that the session lacks; param names it.
func notInContext(param, format string, args ...any) *fault.Error {
	e := fault.New(fault.SessionNotFound, format, args...)
	e.Param = param
	return e
}

// rebuildAgent returns the agent that sent the request of a reply.
func (s *Service) rebuildAgent(ctx context.Context, t session.Turn, row event.Event) (*agent.Agent, error) {
	body, err := row.Body()
	if err != nil {
		return nil, err
	}
	setup := agent.Setup{}
	if sent := body.(event.Reply).Sent; sent != nil && sent.Setup != "" {
		raw, err := s.cfg.Sessions.Setup(ctx, t.WorkspaceID, sent.Setup)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			if err := json.Unmarshal(raw, &setup); err != nil {
				return nil, fmt.Errorf("read the setup of a turn: %w", err)
			}
		}
	}
	ag := setup.Agent()
	ag.Log = s.log
	s.sealReasoning(ag, t)
	if t.ResponseSchema != nil {
		if ag.Output, err = structuredOutput(t.ResponseSchema); err != nil {
			return nil, err
		}
	}
	if err := applyOptions(ag, t); err != nil {
		return nil, err
	}
	if err := addCallerTools(ag, t.Tools, permission.Rules{}); err != nil {
		return nil, err
	}
	ag.Tools = slices.DeleteFunc(ag.Tools, func(t tool.Tool) bool {
		return t.Spec().Caller && slices.Contains(setup.Denied, t.Spec().Name)
	})
	return ag, nil
}
