package apikey

import (
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
)

// Scope is one right of a key.
type Scope string

const (
	Chat                   Scope = "chat"
	SessionsRead           Scope = "sessions:read"
	ToolsRead              Scope = "tools:read"
	ToolsWrite             Scope = "tools:write"
	FilesWrite             Scope = "files:write"
	FilesWriteUnrestricted Scope = "files:write:unrestricted"
	Secret                 Scope = "secret"
	MCP                    Scope = "mcp"
	MCPRead                Scope = "mcp:read"
	WikiWrite              Scope = "wiki:write"
	A2A                    Scope = "a2a"
	ConfigRead             Scope = "config:read"
	ConfigWrite            Scope = "config:write"
	Admin                  Scope = "admin"
	ServerAdmin            Scope = "server:admin"
)

// Usual lists the scopes that the name all stands for: all but the administrators'.
var Usual = Scopes{Chat, SessionsRead, ToolsRead, ToolsWrite, FilesWrite, FilesWriteUnrestricted, Secret, MCP, MCPRead, WikiWrite, A2A,
	ConfigRead, ConfigWrite}

// All lists every scope, in the order of the documentation.
var All = append(slices.Clone(Usual), Admin, ServerAdmin)

// implied names the scopes that a higher one includes.
var implied = map[Scope]Scopes{
	ToolsWrite:             {ToolsRead},
	MCP:                    {MCPRead, WikiWrite},
	FilesWriteUnrestricted: {FilesWrite},
	ConfigWrite:            {ConfigRead},
	Admin:                  {ConfigRead, ConfigWrite},
}

// Known reports whether the scope exists.
func (s Scope) Known() bool { return slices.Contains(All, s) }

// Includes reports whether s includes the rights of want.
func (s Scope) Includes(want Scope) bool { return s == want || slices.Contains(implied[s], want) }

// Accepted returns the scopes that allow what s allows: itself first, then those that include it.
func (s Scope) Accepted() Scopes {
	list := Scopes{s}
	for _, higher := range All {
		if higher != s && higher.Includes(s) {
			list = append(list, higher)
		}
	}
	return list
}

// Scopes are the rights of a key, as granted: implied ones are not listed.
type Scopes []Scope

// Allows reports whether one of the scopes is, or includes, want.
func (s Scopes) Allows(want Scope) bool {
	return slices.ContainsFunc(s, func(have Scope) bool { return have.Includes(want) })
}

// Expand returns the scopes and those that they include, in the order of All.
func (s Scopes) Expand() Scopes {
	var list Scopes
	for _, scope := range All {
		if s.Allows(scope) {
			list = append(list, scope)
		}
	}
	return list
}

// String joins the scopes for a header or a table.
func (s Scopes) String() string { return strings.Join(s.Strings(), ", ") }

// Strings lists the scopes by name.
func (s Scopes) Strings() []string {
	list := make([]string, len(s))
	for i, scope := range s {
		list[i] = string(scope)
	}
	return list
}

func scopesOf(list []string) Scopes {
	s := make(Scopes, len(list))
	for i, name := range list {
		s[i] = Scope(name)
	}
	return s
}

// allScopes is the name for the usual scopes.
const allScopes = "all"

// ParseScopes parses names of scopes; all means the usual ones. Its error lists each unknown name.
func ParseScopes(names []string) (Scopes, error) {
	var scopes Scopes
	var wrong []fault.Violation
	for _, name := range names {
		switch {
		case name == allScopes:
			scopes = append(scopes, Usual...)
		case Scope(name).Known():
			scopes = append(scopes, Scope(name))
		default:
			wrong = append(wrong, unknownScope(name))
		}
	}
	if len(wrong) > 0 {
		return nil, fault.Invalid(wrong...)
	}
	return scopes, nil
}

func unknownScope(name string) fault.Violation {
	known := append([]string{allScopes}, All.Strings()...)
	hint := " The scopes are " + strings.Join(known, ", ") + "."
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		hint = " Did you mean " + near[0] + "?"
	}
	return fault.Violation{Param: "/scopes", Rule: "enum", Message: "Unknown scope " + name + "." + hint}
}

// Names is the reverse of ParseScopes, for tables.
func (s Scopes) Names() string {
	if slices.ContainsFunc(Usual, func(u Scope) bool { return !slices.Contains(s, u) }) {
		return s.String()
	}
	names := []string{allScopes}
	for _, scope := range s {
		if !slices.Contains(Usual, scope) {
			names = append(names, string(scope))
		}
	}
	return strings.Join(names, ", ")
}
