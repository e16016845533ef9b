package apikey

import "slices"

// Role is what a member may do in a workspace.
type Role string

const (
	Owner    Role = "owner"
	Editor   Role = "editor"
	Approver Role = "approver"
	Viewer   Role = "viewer"
)

// Roles lists the roles, the strongest first.
var Roles = []Role{Owner, Editor, Approver, Viewer}

// MemberPrefix begins the ids of members, which no id of a key can have.
const MemberPrefix = "mbr_"

var (
	viewerScopes   = Scopes{SessionsRead, ToolsRead, MCPRead, ConfigRead}
	approverScopes = append(slices.Clone(viewerScopes), ToolsWrite, Secret)
	editorScopes   = append(slices.Clone(approverScopes), Chat, FilesWrite, FilesWriteUnrestricted, WikiWrite, ConfigWrite)
)

// Known reports whether the role exists.
func (r Role) Known() bool { return slices.Contains(Roles, r) }

// Scopes returns the rights of a role. No role includes the administration of the server.
func (r Role) Scopes() Scopes {
	switch r {
	case Owner:
		return append(slices.Clone(Usual), Admin)
	case Editor:
		return editorScopes
	case Approver:
		return approverScopes
	case Viewer:
		return viewerScopes
	}
	return nil
}

// within returns the granted scopes that a role includes as well, and those of the role that a
// granted one includes.
func (s Scopes) within(r Role) Scopes {
	var list Scopes
	for _, scope := range All {
		if s.Allows(scope) && r.Scopes().Allows(scope) {
			list = append(list, scope)
		}
	}
	return list
}
