package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/text"
)

// connectionRow is a grant of a tool server, without its tokens.
type connectionRow struct {
	toolset.Grant
	Who string
}

// Host is that of the authorization server.
func (c connectionRow) Host() string {
	if u, err := url.Parse(c.Issuer); err == nil && u.Host != "" {
		return u.Host
	}
	return c.Issuer
}

// Word is the state of the connection. The next call refreshes a token that has ended.
func (c connectionRow) Word() string {
	if c.ExpiresAt != nil && c.ExpiresAt.Before(time.Now()) {
		return "Refreshed by the next call"
	}
	return "Connected"
}

// readConnections returns the grants of a tool server with their holders.
func (a *App) readConnections(p *page, server toolset.Server) (list []connectionRow, err error) {
	if !server.Auth.OAuth {
		return nil, nil
	}
	grants, err := a.Toolset.Grants(p.Context(), p.Workspace.ID, server.Name)
	if err != nil {
		return nil, err
	}
	names := newAsker(p)
	for _, g := range grants {
		kind, holder, _ := strings.Cut(g.Holder, ":")
		row := connectionRow{Grant: g, Who: "The workspace"}
		switch kind {
		case "user", "caller":
			row.Who = kind + " " + text.Mask(holder)
		case "key":
			if row.Who, err = names.name(p.Context(), holder); err != nil {
				return nil, err
			}
		}
		list = append(list, row)
	}
	return list, nil
}

// isUnconnected reports whether a tool server needs a connection before its tools can be listed or
// called. Callers with grants of their own connect with their first call.
func (a *App) isUnconnected(ctx context.Context, s toolset.Server) (bool, error) {
	if !s.Auth.OAuth || s.Auth.PerCaller {
		return s.Auth.OAuth && s.RefreshedAt == nil, nil
	}
	_, ok, err := a.Toolset.Grant(ctx, s.ID, "")
	return !ok, err
}

// serverRow describes a tool server in a list.
func (a *App) serverRow(p *page, s toolset.Server) (toolServerRow, error) {
	unconnected, err := a.isUnconnected(p.Context(), s)
	return toolServerRow{s, unconnected}, err
}

// connectToolServer leads the browser to the page that connects a tool server.
func (a *App) connectToolServer(w http.ResponseWriter, p *page, name string) error {
	address, _, err := a.ConnectToolServer(p.Context(), p.Workspace.ID, name, nil)
	if f := fault.From(err); f != nil && f.Code == fault.ObjectConflict {
		p.flashBad(w, f.Message)
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools/servers/"+name)
	}
	if err != nil {
		return missingPage(err)
	}
	http.Redirect(w, p.Request, address, http.StatusSeeOther)
	return nil
}

// disconnectToolServer removes a grant.
func (a *App) disconnectToolServer(w http.ResponseWriter, p *page, name string) error {
	id, ok := request.ID(p.PostForm.Get("connection"))
	if !ok {
		return unknownForm()
	}
	if err := a.Toolset.RemoveGrant(p.Context(), p.Workspace.ID, name, id); err != nil {
		return missingPage(err)
	}
	p.flash(w, "Disconnected. The next call asks for a connection.")
	return nil
}
