package admin

import (
	"context"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/vault"
)

func (s *api) listCredentials(ctx context.Context, c *call) (any, error) {
	list, err := s.Vault.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	return paged(c, list, func(v vault.Credential) string { return v.Name })
}

// putCredential registers a credential. Without a value it keeps the one that is there.
func (s *api) putCredential(ctx context.Context, c *call) (any, error) {
	r := vault.Registration{Name: c.PathValue("name"), InQuery: c.body.Bool("in_query"), InBody: c.body.Bool("in_body"),
		AllowHTTP: c.body.Bool("allow_http")}
	if c.body.Require("allowed_hosts") {
		r.Hosts = c.body.Strings("allowed_hosts", vault.MaxHosts)
	}
	if c.body.Has("value") {
		r.Value = c.Value(request.Pointer("value"), c.body.Raw("value"))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return s.Vault.Register(ctx, c.Caller.Workspace.ID, r, c.Caller.By())
}

func (s *api) deleteCredential(ctx context.Context, c *call) (any, error) {
	name := c.PathValue("name")
	err := s.Vault.Remove(ctx, c.Caller.Workspace.ID, name, c.Caller.By())
	if isCode(err, fault.UnknownSecret) {
		return nil, asNotFound(err)
	}
	return deleted{name, true}, err
}

// isCode reports whether an error is a fault with a code.
func isCode(err error, code fault.Code) bool {
	f := fault.From(err)
	return f != nil && f.Code == code
}
