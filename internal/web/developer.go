package web

import "net/http"

// tab is an entry of a row of tabs.
type tab struct {
	Label, Href string
	Current     bool
}

// DeveloperTabs are the pages for developers.
func (p *page) DeveloperTabs() []tab {
	var tabs []tab
	for _, t := range []struct{ label, path string }{
		{"API keys", ""}, {"Personal tokens", "/tokens"}, {"Webhook token", "/webhook"}, {"Endpoints and clients", "/connect"},
	} {
		path := "/w/" + p.Workspace.Slug + "/settings/developer" + t.path
		tabs = append(tabs, tab{t.label, p.App.root + path, p.URL.Path == path})
	}
	return tabs
}

// endpoint is an address of the workspace.
type endpoint struct{ ID, Name, URL, Hint string }

// connectView is the page of the addresses and of the ways to use them.
type connectView struct{ Endpoints []endpoint }

// connectPage shows the addresses of every protocol, and how clients use them.
func (a *App) connectPage(w http.ResponseWriter, p *page) error {
	base, api := p.Base(), p.API()
	return a.render(w, p, "connect", connectView{[]endpoint{
		{"u-api", "API", api, "Messages: POST /messages. Sessions: GET /sessions."},
		{"u-openai", "OpenAI base URL", base + "/openai/v1", "Chat Completions and Responses; the model is " + p.Workspace.Slug + "."},
		{"u-mcp", "MCP", base + "/mcp", "Streamable HTTP."},
		{"u-a2a", "A2A card", base + "/.well-known/agent-card.json", "Calls go to " + base + "/a2a."},
		{"u-ui", "AI SDK", api + "/ui/chat", "The address of a DefaultChatTransport."},
		{"u-agui", "AG-UI", api + "/ag-ui", "The address of an HttpAgent."},
		{"u-openapi", "OpenAPI document", base + "/api/v1/openapi", "Every operation, for generators of clients."},
	}})
}
