package app

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/permission"
)

// ToolRules lists every tool with its rule in a workspace, named by slug or id.
func (a *Admin) ToolRules(ctx context.Context, workspace string) ([]permission.Setting, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Permissions.Settings(ctx, w.ID)
}

// SetToolRule makes a workspace's rule for a tool: allow, ask or deny.
func (a *Admin) SetToolRule(ctx context.Context, workspace, tool, rule string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	v, ok := permission.ParseVerdict(rule)
	if !ok {
		return fault.Invalid(fault.Violation{Param: "/rule", Rule: "enum", Message: "A rule is allow, ask or deny.", Allowed: []any{"allow", "ask", "deny"}})
	}
	return a.Permissions.Set(ctx, w.ID, tool, v)
}

// ResetToolRule gives a tool its built-in rule back.
func (a *Admin) ResetToolRule(ctx context.Context, workspace, tool string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return a.Permissions.Reset(ctx, w.ID, tool)
}

// Allowlist lists a workspace's allow-list, oldest first, with what was revoked.
func (a *Admin) Allowlist(ctx context.Context, workspace string) ([]permission.Entry, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Permissions.List(ctx, w.ID)
}

// AllowPattern puts a pattern on a workspace's allow-list, and returns it as it is
// stored.
func (a *Admin) AllowPattern(ctx context.Context, workspace, pattern string) (string, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return "", err
	}
	p, err := permission.Parse(pattern)
	if err != nil {
		return "", err
	}
	return p.String(), replan.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		return a.Permissions.Add(ctx, tx, permission.Rule{Workspace: w.ID, Pattern: pattern})
	})
}

// RevokePattern takes an entry off a workspace's allow-list.
func (a *Admin) RevokePattern(ctx context.Context, workspace, id string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	missing := fault.Invalid(fault.Violation{Param: "/id", Rule: "unknown", Message: "The allow-list has no such entry in force. See parley allowlist list."})
	entry, err := uuid.Parse(id)
	if err != nil {
		return missing
	}
	ok, err := a.Permissions.Revoke(ctx, w.ID, entry)
	if err == nil && !ok {
		return missing
	}
	return err
}
