package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/toolfile"
)

// toolServerRow is a tool server in a list.
type toolServerRow struct {
	toolset.Server
	Unconnected bool // it needs a connection
}

// Host is where the calls go.
func (s toolServerRow) Host() string {
	if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return s.URL
}

// KindWord is the kind of the server in words.
func (s toolServerRow) KindWord() string { return strings.ToUpper(string(s.Kind)) }

// Seconds is how long a call may take.
func (s toolServerRow) Seconds() int { return int(s.Timeout / time.Second) }

// Waiting are the tools whose definitions wait for a review.
func (s toolServerRow) Waiting() (list []toolset.Tool) {
	for _, t := range s.Tools {
		if state := t.State(); state == toolset.New || state == toolset.Changed {
			list = append(list, t)
		}
	}
	return list
}

// Usable is how many tools the model may use.
func (s toolServerRow) Usable() (n int) {
	for _, t := range s.Tools {
		if s.Enabled && t.State() == toolset.Usable {
			n++
		}
	}
	return n
}

// Word and Tone are the state of the server.
func (s toolServerRow) Word() string {
	switch {
	case !s.Enabled:
		return "Disabled"
	case s.Unconnected:
		return "Needs connection"
	case s.LastError != "":
		return "Failing"
	case len(s.Waiting()) > 0:
		return "To review"
	}
	return "Ready"
}

func (s toolServerRow) Tone() string {
	return map[string]string{"Disabled": "off", "Failing": "bad", "Needs connection": "warn", "To review": "warn", "Ready": "ok"}[s.Word()]
}

// newServerView is the form of a new tool server.
type newServerView struct {
	Kind    string // mcp, openapi or http
	Form    *form
	Secrets []option
	SignIns []option
}

// signIns are the choices for how requests to an MCP server are authorized.
var signIns = []option{{"", "None"}, {toolset.PerWorkspace, "OAuth, one connection for the workspace"},
	{toolset.PerCaller, "OAuth, each caller connects"}}

const noSecret = "" // the value of the choice "No credential"

func (a *App) newToolServerPage(w http.ResponseWriter, p *page) error {
	return a.showNewToolServer(w, p, http.StatusOK, emptyForm("timeout_seconds", strconv.Itoa(int(toolset.DefaultTimeout/time.Second))))
}

func (a *App) showNewToolServer(w http.ResponseWriter, p *page, status int, f *form) error {
	view := newServerView{Kind: p.URL.Query().Get("kind"), Form: f, Secrets: []option{{noSecret, "None"}}, SignIns: signIns}
	if view.Kind != "openapi" && view.Kind != "http" {
		view.Kind = string(toolset.MCP)
	}
	if a.srv.Vault != nil {
		list, err := a.srv.Vault.List(p.Context(), p.Workspace.ID)
		if err != nil {
			return err
		}
		for _, c := range list {
			view.Secrets = append(view.Secrets, option{c.Name, c.Name})
		}
	}
	return a.renderStatus(w, p, status, "toolserver-new", view)
}

// addToolServer connects to an MCP server and adds it with its tools, or adds an HTTP API.
func (a *App) addToolServer(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	e := toolset.Entry{Name: strings.TrimSpace(f.Value("name")), URL: strings.TrimSpace(f.Value("url")), Headers: parseHeaders(f),
		Timeout: parseTimeout(f)}
	if allowed := fieldLines(f.Value("allow")); len(allowed) > 0 {
		e.Allowed = allowed
	}
	kind := p.URL.Query().Get("kind")
	definition := definitionOf(f, kind, e.Headers)
	if f.Failed() {
		return a.showNewToolServer(w, p, http.StatusUnprocessableEntity, f)
	}
	var server toolset.Server
	var skipped []toolset.Skipped
	var err error
	if definition != nil {
		server, err = a.AddHTTPAPI(p.Context(), p.Workspace.ID, e, definition)
	} else {
		e.Auth = parseAuth(f)
		server, skipped, err = a.AddToolServer(p.Context(), p.Workspace.ID, e)
	}
	if err != nil {
		if err := f.take(err, "name", "url", "headers", "allow", "timeout_seconds", "auth", "client_id", "client_secret_name",
			"scopes", "tools", "openapi", "operations"); err != nil {
			return err
		}
		return a.showNewToolServer(w, p, http.StatusUnprocessableEntity, f)
	}
	if server.Auth.OAuth {
		p.flash(w, "Added "+server.Name+". Connect it, so that its tools can be listed.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools/servers/"+server.Name)
	}
	p.flash(w, fmt.Sprintf("Added %s with %s. Each call asks for an approval until you label its tool as reading.%s",
		server.Name, plural(len(server.Tools), "tool", "tools"), skippedText(skipped)))
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools/servers/"+server.Name)
}

// parseAuth returns how requests to an MCP server are authorized.
func parseAuth(f *form) toolset.Auth {
	per := f.Value("auth")
	a := toolset.Auth{OAuth: per != "", PerCaller: per == toolset.PerCaller, ClientID: strings.TrimSpace(f.Value("client_id")),
		ClientSecret: f.Value("client_secret_name")}
	if scopes := strings.Fields(f.Value("scopes")); len(scopes) > 0 {
		a.Scopes = scopes
	}
	return a
}

// definitionOf returns the members of a request body that define the tools of an HTTP API, nil for an
// MCP server. The definition of a tool can name the host and headers.
func definitionOf(f *form, kind string, headers map[string]string) (list []request.Member) {
	address := strings.TrimSpace(f.Value("url"))
	switch kind {
	case "openapi":
		operations, _ := json.Marshal(append([]string{}, fieldLines(f.Value("operations"))...)) // texts have no other errors
		list = []request.Member{{Name: "openapi", Value: request.QuoteText(f.Value("openapi"))}, {Name: "operations", Value: operations}}
	case "http":
		d := parseTools(f)
		address = cmp.Or(address, d.Host)
		maps.Copy(headers, d.Headers)
		list = []request.Member{{Name: "tools", Value: d.Tools}}
	default:
		return nil
	}
	if address != "" {
		list = append(list, request.Member{Name: "url", Value: request.QuoteText(address)})
	}
	return list
}

// parseTools returns the tools of the form: one as the guide describes it, or tools of the API, in
// YAML or JSON.
func parseTools(f *form) toolfile.Definition {
	d, err := toolfile.ParseAny(f.Value("tools"))
	if err != nil {
		f.fail("tools", fmt.Sprintf("The definition cannot be read: %.300s.", err))
	}
	return d
}

// parseHeaders returns the headers of the form: a credential as bearer, and lines of name and value.
func parseHeaders(f *form) map[string]string {
	headers := make(map[string]string)
	if secret := f.Value("secret"); secret != noSecret {
		headers["Authorization"] = "Bearer ${" + secret + "}"
	}
	for _, line := range fieldLines(f.Value("headers")) {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			f.fail("headers", fmt.Sprintf("The line %.80q is not a header. Write a name, a colon and a value.", line))
			continue
		}
		if _, double := headers[http.CanonicalHeaderKey(name)]; double {
			f.fail("headers", fmt.Sprintf("The header %.80s is given twice.", name))
		}
		headers[http.CanonicalHeaderKey(name)] = strings.TrimSpace(value)
	}
	return headers
}

// fieldLines returns the lines of a text field that are not empty.
func fieldLines(s string) (list []string) {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

func parseTimeout(f *form) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(f.Value("timeout_seconds")))
	if most := int(toolset.MaxTimeout / time.Second); err != nil || n < 1 || n > most {
		f.fail("timeout_seconds", fmt.Sprintf("The time for a call is 1 to %d seconds.", most))
	}
	return time.Duration(n) * time.Second
}

// skippedText names the first tools that cannot be used.
func skippedText(skipped []toolset.Skipped) string {
	var b strings.Builder
	for i, s := range skipped {
		if i == 3 {
			fmt.Fprintf(&b, " %d more were left out.", len(skipped)-i)
			break
		}
		fmt.Fprintf(&b, " %s was left out: %s", text.Truncate(s.OwnName, 80), s.Reason)
	}
	return b.String()
}

// toolFacts are the rules and the use of the workspace's tools, by name.
type toolFacts struct {
	settings []permission.Setting
	uses     map[string]session.ToolUse
}

func (a *App) readToolFacts(p *page) (facts toolFacts, err error) {
	settings, err := a.Permissions.Settings(p.Context(), p.Workspace.ID)
	if err != nil {
		return facts, err
	}
	uses, err := a.srv.Sessions.ToolUses(p.Context(), p.Workspace.ID, time.Now().AddDate(0, 0, -toolDays))
	if err != nil {
		return facts, err
	}
	facts = toolFacts{settings, make(map[string]session.ToolUse, len(uses))}
	for _, use := range uses {
		facts.uses[use.Tool] = use
	}
	return facts, nil
}
