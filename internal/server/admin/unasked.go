package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/store/toolset"
)

// changedCredentials has the credentials with a value. It is true for those that a change before the
// present one concerns: a server that needs them can answer otherwise after that change.
type changedCredentials map[string]bool

func (s *api) readChangedCredentials(ctx context.Context, c *call) (changedCredentials, error) {
	list, err := s.Vault.List(ctx, c.Caller.Workspace.ID)
	creds := make(changedCredentials)
	for _, v := range list {
		if v.HasValue {
			creds[v.Name] = false
		}
	}
	return creds, err
}

// note records a change of the credential name.
func (creds changedCredentials) note(op operation, name string, in *call) {
	if _, hasValue := creds[name]; op.id == "putCredential" && (hasValue || in.body.Has("value")) {
		creds[name] = true
	}
}

func (creds changedCredentials) areUsedBy(s toolset.Server) bool {
	return slices.ContainsFunc(s.Secrets(), func(name string) bool { return creds[name] })
}

// needsToolsOf reports whether a change is of a tool of one of these entries, or names one.
func (p plannedChange) needsToolsOf(servers []string) bool {
	return slices.ContainsFunc(servers, func(name string) bool {
		return strings.HasPrefix(p.Path, "/tool-servers/"+name+"/") || strings.Contains(p.Path, name+"__") ||
			strings.Contains(string(p.Body), name+"__")
	})
}
