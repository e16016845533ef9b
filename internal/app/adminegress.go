package app

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/toolenv"
)

// EgressPolicy says where the tools of a workspace, named by slug or id, may send
// requests beside the hosts of credentials.
func (a *Admin) EgressPolicy(ctx context.Context, workspace string) (toolenv.Policy, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return toolenv.Policy{}, err
	}
	return a.Runner.Policy(ctx, w.ID)
}

// AllowEgress lets the tools of a workspace send requests to a host, and returns it as
// it is stored.
func (a *Admin) AllowEgress(ctx context.Context, workspace, host string) (string, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return "", err
	}
	return a.Runner.Allow(ctx, w.ID, host)
}

// RemoveEgress takes a host off a workspace's list.
func (a *Admin) RemoveEgress(ctx context.Context, workspace, host string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	ok, err := a.Runner.Remove(ctx, w.ID, host)
	if err == nil && !ok {
		return fault.Invalid(fault.Violation{Param: "/host", Rule: "unknown", Message: "The list has no such host. See parley egress list."})
	}
	return err
}

// SetEgressPublic lets the tools of a workspace reach every public host, or those on
// its list alone.
func (a *Admin) SetEgressPublic(ctx context.Context, workspace string, public bool) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return a.Runner.SetPublic(ctx, w.ID, public)
}

// EgressRequests lists the newest requests of a workspace's tools, or of those of one
// session.
func (a *Admin) EgressRequests(ctx context.Context, workspace string, session *uuid.UUID, limit int) ([]toolenv.Request, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Runner.Requests(ctx, w.ID, session, limit)
}
