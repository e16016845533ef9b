// Package connect serves the pages with which a browser connects a tool server: the link of a turn or
// of an administrator, the way to the authorization server and back, and the end.
//
// It promises: a page works without an account and without scripts, names the workspace and the tool
// server, and cannot be framed. Only a request from the page itself begins a connection, and only the
// browser that began it ends it. No address in the browser's history works twice.
package connect

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/turn"
)

// Config configures the pages. All fields are required.
type Config struct {
	Toolset   *toolset.Store
	Connector *mcpauth.Service
	// Refresh reads the tools of a server that an administrator has connected.
	Refresh func(context.Context, toolset.Link) error
}

// pages serves the pages.
type pages struct {
	*server.Server
	Config
	guard *http.CrossOriginProtection
}

// New returns the handlers by their paths.
func New(srv *server.Server, cfg Config) server.Routes {
	p := &pages{Config: cfg, guard: http.NewCrossOriginProtection()}
	p.Server = srv.WithErrorPage(writeError)
	return server.Routes{
		turn.ConnectPath:            p.Handler(p.unknown),
		turn.ConnectPath + "{code}": p.Handler(p.link),
		mcpauth.CallbackPath:        p.Handler(p.callback),
		donePath:                    p.Handler(p.fixed("Connected", "The tool server is connected. You can close this window.")),
		unlistedPath: p.Handler(p.fixed("Connected", "The tool server is connected, but it has not listed its tools. "+
			"Its page shows the reason. You can close this window.")),
		declinedPath: p.Handler(p.fixed("Not connected", "You have not granted access, so nothing was "+
			"connected. You can close this window.")),
	}
}

// The pages at the end, whose addresses hold no secret.
const (
	donePath     = "/connect/done"
	unlistedPath = "/connect/unlisted"
	declinedPath = "/connect/declined"
)

// perMinute is how many links and answers an address may open in a minute.
const perMinute = 60

// admit counts a request and sets the headers of every page.
func (p *pages) admit(w http.ResponseWriter, r *http.Request, methods ...string) error {
	setHeaders(w.Header())
	allowed := false
	for _, m := range methods {
		allowed = allowed || r.Method == m
	}
	if !allowed {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return fault.New(fault.MethodNotAllowed, "This page takes %s.", strings.Join(methods, " and "))
	}
	if p.Limits == nil {
		return nil
	}
	ctx, cancel := p.Brief(r.Context())
	defer cancel()
	_, err := p.Limits.Take(ctx, "address:"+p.ClientAddress(r).String(), "connections", perMinute)
	return err
}

// link shows the page of a link, or leads the browser to the authorization server.
func (p *pages) link(w http.ResponseWriter, r *http.Request) error {
	if err := p.admit(w, r, http.MethodGet, http.MethodPost); err != nil {
		return err
	}
	ctx, cancel := p.Brief(r.Context())
	defer cancel()
	link, err := p.Toolset.LinkByCode(ctx, r.PathValue("code"))
	if err != nil {
		return err
	}
	server, err := p.Toolset.Find(ctx, link.Workspace, link.ServerName)
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet {
		return writePage(w, http.StatusOK, askPage(link, server))
	}
	if err := p.guard.Check(r); err != nil { // a page elsewhere must not let a visitor connect the workspace of its author
		return fault.New(fault.OriginNotAllowed, "Open the link itself and continue from there.")
	}
	address, state, err := p.Connector.Begin(r.Context(), link)
	if err != nil {
		return shown(err)
	}
	http.SetCookie(w, p.cookie(state, stateLife))
	return writePage(w, http.StatusOK, leavePage(link, address))
}

// unknown answers for addresses that cannot be links, such as those that were cut off.
func (p *pages) unknown(w http.ResponseWriter, r *http.Request) error {
	if err := p.admit(w, r, http.MethodGet, http.MethodPost); err != nil {
		return err
	}
	return toolset.ErrUnknownLink
}

// endTime limits the end of a connection: the exchange of the code, the grant, and the list of the
// tools.
const endTime = 3 * time.Minute

// callback ends a connection, when the authorization server sends the browser back.
func (p *pages) callback(w http.ResponseWriter, r *http.Request) error {
	if err := p.admit(w, r, http.MethodGet); err != nil {
		return err
	}
	bound := ""
	if c, err := r.Cookie(p.cookie("", 0).Name); err == nil {
		bound = c.Value
	}
	http.SetCookie(w, p.cookie("", -time.Second))
	q := r.URL.Query()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), endTime) // the code is spent even if the browser leaves
	defer cancel()
	link, grant, err := p.Connector.Finish(ctx, mcpauth.Answer{State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"),
		Error: q.Get("error")}, bound)
	if errors.Is(err, mcpauth.ErrDeclined) {
		if err := p.Turns.DeclineConnection(ctx, link); err != nil {
			return err
		}
		return p.leave(w, r, declinedPath)
	}
	if err != nil {
		return shown(err)
	}
	if err := p.Turns.Connect(ctx, link, grant); err != nil {
		return err
	}
	p.Log.InfoContext(ctx, "tool server connected", "workspace", link.Workspace, "server", link.ServerName)
	if !link.IsForTurn() { // an administrator wants the tools of the server
		if err := p.Refresh(ctx, link); err != nil {
			p.Log.WarnContext(ctx, "list the tools of a connected tool server", "workspace", link.Workspace, "server", link.ServerName, "err", err)
			return p.leave(w, r, unlistedPath)
		}
	}
	return p.leave(w, r, donePath)
}

// leave redirects to a page whose address holds no secret.
func (p *pages) leave(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, p.Connector.Base+path, http.StatusSeeOther)
	return nil
}

// fixed returns a page without a variable part.
func (p *pages) fixed(title, text string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := p.admit(w, r, http.MethodGet); err != nil {
			return err
		}
		return writePage(w, http.StatusOK, page{Title: title, Text: text})
	}
}

// shown makes an error that explains itself visible.
func shown(err error) error {
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return fault.New(fault.ObjectConflict, "%s", string(refused))
	}
	return err
}

// stateLife is how long a browser may stay at the authorization server.
const stateLife = 20 * time.Minute

// cookie binds a connection to the browser that began it.
func (p *pages) cookie(state string, life time.Duration) *http.Cookie {
	c := &http.Cookie{Name: "parley_connect", Value: state, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(p.Connector.Base, "https:") {
		c.Name, c.Secure = "__Host-"+c.Name, true
	}
	return c
}
