package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// toolAuth parses how requests to a tool server are authorized.
func (c *call) toolAuth() (a toolset.Auth) {
	if c.body.Has("auth") {
		a.OAuth = c.body.Enum("auth", toolset.AuthNone, toolset.AuthOAuth) == toolset.AuthOAuth
	}
	if c.body.Has("auth_per") {
		a.PerCaller = c.body.Enum("auth_per", toolset.PerWorkspace, toolset.PerCaller) == toolset.PerCaller
	}
	if c.body.Has("client_id") {
		a.ClientID = c.body.String("client_id", toolset.MaxClientID)
	}
	if c.body.Has("client_secret_name") {
		a.ClientSecret = c.body.String("client_secret_name", 64)
	}
	if c.body.Has("scopes") {
		a.Scopes = append([]string{}, c.body.Strings("scopes", toolset.MaxScopes)...)
	}
	return a
}

// callerOf returns the holder of an administrator's own grants.
func callerOf(ctx context.Context) string {
	a, _ := actor.From(ctx)
	return "key:" + cmp.Or(a.ID, a.Name)
}

// connectLink is a link for a browser.
type connectLink struct {
	Server    string    `json:"server"`
	URL       string    `json:"connect_url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// ConnectToolServer makes a link with which the administrator connects a tool server: for the
// workspace, or for itself where each caller has a grant. scopes are asked for besides those of the
// entry.
func (s Stores) ConnectToolServer(
	ctx context.Context, workspace uuid.UUID, name string, scopes []string,
) (address string, expires time.Time, err error) {
	server, err := s.Toolset.Find(ctx, workspace, name)
	if err != nil {
		return "", expires, err
	}
	if !server.Auth.OAuth {
		return "", expires, fault.New(fault.ObjectConflict, "The tool server %s has no OAuth, so it needs no connection.", name)
	}
	err = s.Connector.CheckBase()
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return "", expires, fault.New(fault.ObjectConflict, "%s", string(refused))
	}
	if err != nil {
		return "", expires, err
	}
	expires = time.Now().Add(toolset.LinkLife)
	link := toolset.NewLink{Workspace: workspace, Server: name, Caller: callerOf(ctx), Scopes: scopes, Life: toolset.LinkLife}
	_, code, err := s.Toolset.CreateLink(ctx, link)
	return s.Connector.Base + turn.ConnectPath + code, expires, err
}

// RefreshConnected reads the tools of a server that an administrator has connected.
func (s Stores) RefreshConnected(ctx context.Context, link toolset.Link) error {
	s.Probe = s.Probe.As(link.Holder)
	_, _, err := s.refreshToolServer(ctx, link.Workspace, link.ServerName)
	return err
}

func (s *api) connectToolServer(ctx context.Context, c *call) (any, error) {
	name, scopes := c.PathValue("toolServer"), strings.Fields(c.query.Text("scope"))
	if wrong := len(scopes) - len(toolset.CleanScopes(scopes)); wrong != 0 {
		c.Add(fault.Violation{Param: "/scope", Rule: "format",
			Message: fmt.Sprintf("scope is a list of at most %d different scopes such as tickets:write, with spaces between them.",
				toolset.MaxScopes)})
		return nil, c.Err()
	}
	address, expires, err := s.ConnectToolServer(ctx, c.Caller.Workspace.ID, name, toolset.CleanScopes(scopes))
	view := connectLink{name, address, expires.UTC()}
	return once{view, connectLink{Server: name, ExpiresAt: view.ExpiresAt}}, err
}

// connectionView is a grant, without its tokens.
type connectionView struct {
	ID        uuid.UUID  `json:"connection_id"`
	Per       string     `json:"per"`    // workspace, user, caller or key
	Holder    string     `json:"holder"` // name of the user, caller_id, or id of the key; "": the workspace
	Issuer    string     `json:"issuer"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"` // of the access token; null: unknown
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

func (s *api) listConnections(ctx context.Context, c *call) (any, error) {
	list, err := s.Toolset.Grants(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"))
	if err != nil {
		return nil, err
	}
	views := make([]connectionView, len(list))
	for i, g := range list {
		per, holder, _ := strings.Cut(g.Holder, ":")
		views[i] = connectionView{g.ID, cmp.Or(per, toolset.PerWorkspace), holder, g.Issuer, g.Scopes, g.ExpiresAt,
			g.CreatedAt.UTC(), g.UpdatedAt.UTC()}
	}
	return paged(c, views, func(v connectionView) string { return v.Per + ":" + v.Holder })
}

func (s *api) deleteConnection(ctx context.Context, c *call) (any, error) {
	id, ok := request.ID(c.PathValue("connectionId"))
	if !ok {
		return nil, notFound("connection", c.PathValue("connectionId"))
	}
	return deleted{id.String(), true}, s.Toolset.RemoveGrant(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"), id)
}
