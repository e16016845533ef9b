package turn

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/session"
)

// modelsOf returns the model of a turn, and those that answer in place of one that fails. A fallback
// model that this process cannot call is left out.
func (s *Service) modelsOf(ctx context.Context, claimed session.Claimed, a *attempt) (m model.Model, fallbacks []model.Model, err error) {
	id := claimed.Turn.WorkspaceID
	name := cmp.Or(claimed.Agent.Model, s.cfg.DefaultModel)
	if m, err = s.openModel(ctx, id, name, a); err != nil {
		if pgerr.IsTransient(err) || ctx.Err() != nil {
			return nil, nil, err
		}
		s.log.ErrorContext(ctx, "no model for the workspace", "workspace", id, "model", name, "err", err)
		return nil, nil, &agent.Failure{Code: event.ModelError, Message: model.Unavailable, Final: true}
	}
	for _, name := range claimed.Agent.Fallbacks {
		other, err := s.openModel(ctx, id, name, a)
		if err != nil {
			s.log.WarnContext(ctx, "fallback model left out", "workspace", id, "model", name, "err", err)
		} else if other.Name() != m.Name() {
			fallbacks = append(fallbacks, other)
		}
	}
	return m, fallbacks, nil
}

func (s *Service) openModel(ctx context.Context, workspace uuid.UUID, name string, a *attempt) (model.Model, error) {
	m, err := s.cfg.Model(ctx, workspace, name)
	if err != nil {
		return nil, err
	}
	return sharedModel{m, s.modelCalls, workspace, a, counts{s.cfg.Metrics}}, nil
}
