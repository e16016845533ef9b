package app

import (
	"context"
	"fmt"
	"slices"
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
	var own []string
	if m.own != nil && id != uuid.Nil && len(named) > 0 {
		list, err := m.own.List(ctx, id)
		if err != nil {
			return err
		}
		own = modelset.Names(list)
	}
	var wrong []fault.Violation
	for _, n := range named {
		if v, ok := m.violation(n.Param, n.Message, own); ok {
			wrong = append(wrong, v)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	c.Model, c.FallbackModels = nil, nil
	return fault.Invalid(append(wrong, c.Violations()...)...)
}

// violation returns the violation of a model that neither the workspace's own providers nor those of
// the server have.
func (m modelCheck) violation(param, full string, own []string) (v fault.Violation, wrong bool) {
	if provider, name, _ := strings.Cut(full, "/"); name != "" && slices.Contains(own, provider) {
		return v, false
	}
	name, err := parseModel(full, own...)
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
	others := ""
	for _, name := range own {
		others += " and " + name + "/NAME"
	}
	v.Message = fmt.Sprintf(
		"Neither this server nor the workspace has a provider %s, so %q cannot be called. The models are %s%s. parley models set adds "+
			"a provider.", name.provider, full, strings.Join(m.cfg.OfferedModels(), ", "), others)
	return v, true
}
