package web

import "strings"

// navGroup is a titled part of the navigation.
type navGroup struct {
	Title string
	Links []navLink
}

type navLink struct {
	Label, Icon, Section string
	path                 string // of the route; {ws} is the workspace
	scope                string
	Href                 string
	Count                int
}

func navigation() []navGroup {
	return []navGroup{
		{"", []navLink{
			{Label: "Playground", Icon: "chat", Section: "chat", path: "/w/{ws}/chat", scope: "chat"},
			{Label: "Approvals", Icon: "approvals", Section: "approvals", path: "/w/{ws}/approvals", scope: "sessions:read"},
			{Label: "Sessions", Icon: "sessions", Section: "sessions", path: "/w/{ws}/sessions", scope: "sessions:read"},
			{Label: "Files", Icon: "file", Section: "files", path: "/w/{ws}/files", scope: "tools:read"},
		}},
		{"Build", []navLink{
			{Label: "Agent", Icon: "agent", Section: "agent", path: "/w/{ws}/agent", scope: "config:read"},
			{Label: "Skills", Icon: "skill", Section: "skills", path: "/w/{ws}/skills", scope: "config:read"},
			{Label: "Knowledge", Icon: "book", Section: "knowledge", path: "/w/{ws}/knowledge", scope: "config:read"},
			{Label: "Tools", Icon: "tools", Section: "tools", path: "/w/{ws}/tools", scope: "config:read"},
		}},
		{"Observe", []navLink{
			{Label: "Usage and cost", Icon: "usage", Section: "usage", path: "/w/{ws}/usage", scope: "config:read"},
			{Label: "Limits", Icon: "limits", Section: "limits", path: "/w/{ws}/limits", scope: "config:read"},
		}},
		{"Settings", []navLink{
			{Label: "Developer", Icon: "key", Section: "developer", path: "/w/{ws}/settings/developer", scope: "config:read"},
			{Label: "Models", Icon: "agent", Section: "models", path: "/w/{ws}/settings/models", scope: "config:read"},
			{Label: "Credentials", Icon: "lock", Section: "credentials", path: "/w/{ws}/settings/credentials", scope: "config:read"},
			{Label: "Allow-list", Icon: "check", Section: "allowlist", path: "/w/{ws}/settings/allowlist", scope: "config:read"},
			{Label: "Egress", Icon: "globe", Section: "egress", path: "/w/{ws}/settings/egress", scope: "config:read"},
			{Label: "Callbacks", Icon: "callback", Section: "callbacks", path: "/w/{ws}/settings/callbacks", scope: "config:read"},
			{Label: "Members", Icon: "members", Section: "members", path: "/w/{ws}/settings/members", scope: "config:read"},
			{Label: "Workspace", Icon: "panel", Section: "workspace", path: "/w/{ws}/settings/workspace", scope: "config:read"},
			{Label: "Changes", Icon: "clock", Section: "log", path: "/w/{ws}/settings/log", scope: "admin"},
		}},
		{"Server", []navLink{
			{Label: "Workspaces", Icon: "panel", Section: "workspaces", path: "/workspaces"},
			{Label: "Users", Icon: "user", Section: "users", path: "/admin/users"},
			{Label: "System", Icon: "system", Section: "system", path: "/admin/system"},
			{Label: "Changes", Icon: "clock", Section: "serverlog", path: "/admin/log"},
		}},
	}
}

// Nav returns the navigation that the visitor may use. It lists only pages that exist.
func (p *page) Nav() []navGroup {
	var groups []navGroup
	for _, group := range navigation() {
		var links []navLink
		for _, link := range group.Links {
			inside := strings.Contains(link.path, "{ws}")
			allowed := inside && p.Workspace.Slug != "" && p.Can(link.scope) || !inside && p.Visitor.Admin
			if !allowed || !p.App.known[link.path] {
				continue
			}
			link.Href = p.App.root + strings.Replace(link.path, "{ws}", p.Workspace.Slug, 1)
			links = append(links, link)
		}
		if len(links) > 0 {
			groups = append(groups, navGroup{group.Title, links})
		}
	}
	return groups
}
