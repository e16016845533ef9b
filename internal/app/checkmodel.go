package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/workspace"
)

// modelCheck rejects models that no provider has. The store of workspaces does not know the
// providers.
type modelCheck struct {
	cfg  Config
	own  *modelset.Store // nil: workspaces have no providers of their own
	here bool            // this process calls the models: it must have their providers
}

// Check rejects a change with such models, together with every other violation of the change. id is
// uuid.Nil for a new workspace.
func (m modelCheck) Check(ctx context.Context, id uuid.UUID, c workspace.Change) error {
	var named []fault.Violation // only Param and Message, which is the model
	if c.Model != nil && *c.Model != "" {
		named = append(named, fault.Violation{Param: "/model", Message: *c.Model})
	}
	if c.FallbackModels != nil {
		for i, name := range *c.FallbackModels {
			named = append(named, fault.Violation{Param: fmt.Sprintf("/fallback_models/%d", i), Message: name})
		}
	}
	var wrong []fault.Violation
	for _, n := range named {
		has, err := m.hasOwn(ctx, id, n.Message)
		if err != nil {
			return err
		}
		if v, ok := m.violation(n.Param, n.Message); ok && !has {
			wrong = append(wrong, v)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	c.Model, c.FallbackModels = nil, nil
	return fault.Invalid(append(wrong, c.Violations()...)...)
}

// hasOwn reports whether a provider of the workspace has a model.
func (m modelCheck) hasOwn(ctx context.Context, id uuid.UUID, full string) (bool, error) {
	provider, name, _ := strings.Cut(full, "/")
	if m.own == nil || id == uuid.Nil || name == "" || !modelset.IsName(provider) {
		return false, nil
	}
	_, found, err := m.own.Find(ctx, id, provider)
	return found, err
}

// violation returns what is wrong with a model of the server's providers.
func (m modelCheck) violation(param, full string) (v fault.Violation, wrong bool) {
	name, err := parseModel(full)
	if err != nil {
		text := strings.ToUpper(err.Error()[:1]) + strings.TrimRight(err.Error()[1:], "?.") + "."
		return fault.Violation{Param: param, Rule: "format", Message: text}, true
	}
	if !m.here || m.cfg.hasProvider(name.provider) {
		return v, false
	}
	v = fault.Violation{Param: param, Rule: "enum"}
	for _, name := range m.cfg.OfferedModels() {
		v.Allowed = append(v.Allowed, name)
	}
	v.Message = fmt.Sprintf("This server has no provider %s, so it cannot call %q. Its models are %s.", name.provider, name, strings.Join(m.cfg.OfferedModels(), ", "))
	return v, true
}
