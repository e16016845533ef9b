package mcpauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// place is what a server says about its authorization.
type place struct {
	resource string   // RFC 8707
	scopes   []string // to ask for
	meta     *oauthex.AuthServerMeta
}

// hello is a request that a server with OAuth answers with 401.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"parley","version":"1"}}}`

// discover finds the authorization server of a tool server: its challenge leads to the metadata of
// the resource, and these to the metadata of the authorization server.
func discover(ctx context.Context, c *http.Client, server toolset.Server) (p place, err error) {
	challenges, err := challengesOf(ctx, c, server)
	if err != nil {
		return p, err
	}
	resource, err := resourceOf(ctx, c, server, challenges)
	if err != nil {
		return p, err
	}
	issuer := resource.AuthorizationServers[0]
	p.meta, err = auth.GetAuthServerMetadata(ctx, issuer, c)
	if err != nil || p.meta == nil {
		return p, tool.Refusal(fmt.Sprintf("The authorization server %s has no valid metadata: its issuer must be that address, and "+
			"it must support PKCE.", hostName(issuer)))
	}
	if !slices.Contains(p.meta.CodeChallengeMethodsSupported, "S256") || p.meta.AuthorizationEndpoint == "" || p.meta.TokenEndpoint == "" {
		return p, tool.Refusal(fmt.Sprintf("The authorization server %s does not support PKCE with S256.", hostName(issuer)))
	}
	p.resource, p.scopes = resource.Resource, server.Auth.Scopes
	for _, ch := range challenges {
		if p.scopes == nil && ch.Scheme == "bearer" && ch.Params["scope"] != "" {
			p.scopes = strings.Fields(ch.Params["scope"])
		}
	}
	if p.scopes == nil {
		p.scopes = resource.ScopesSupported
	}
	if slices.Contains(p.meta.ScopesSupported, "offline_access") && !slices.Contains(p.scopes, "offline_access") {
		p.scopes = append(slices.Clip(p.scopes), "offline_access") // for a refresh token
	}
	return p, nil
}

// challengesOf returns how a server answers a request without a token.
func challengesOf(ctx context.Context, c *http.Client, server toolset.Server) ([]oauthex.Challenge, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(hello))
	if err != nil {
		return nil, fmt.Errorf("make a request to a tool server: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := c.Do(req)
	if err != nil {
		return nil, tool.Refusal(fmt.Sprintf("The tool server %s gives no valid answer.", server.Name))
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		return nil, tool.Refusal(fmt.Sprintf("The tool server %s answers HTTP %d to a request without a token, where OAuth has 401.",
			server.Name, res.StatusCode))
	}
	challenges, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, nil // the metadata also has a usual address
	}
	return challenges, nil
}

// resourceOf returns the metadata of a server as a protected resource (RFC 9728). They must be at the
// server's own origin and be about it. Without them the server's origin is the authorization server,
// as in the first revision of MCP with authorization.
func resourceOf(
	ctx context.Context, c *http.Client, server toolset.Server, challenges []oauthex.Challenge,
) (*oauthex.ProtectedResourceMetadata, error) {
	own, err := url.Parse(server.URL)
	if err != nil {
		return nil, tool.Refusal("The address of the tool server cannot be parsed.")
	}
	origin := own.Scheme + "://" + own.Host
	type candidate struct{ address, resource string }
	var list []candidate
	for _, ch := range challenges {
		address := ch.Params["resource_metadata"]
		if address == "" {
			continue
		}
		if at, err := url.Parse(address); err != nil || at.Scheme+"://"+at.Host != origin {
			return nil, tool.Refusal(fmt.Sprintf("The tool server %s names metadata at another host than its own.", server.Name))
		}
		list = append(list, candidate{address, server.URL})
	}
	const known = "/.well-known/oauth-protected-resource"
	list = append(list, candidate{origin + known + strings.TrimSuffix(own.EscapedPath(), "/"), server.URL}, candidate{origin + known, origin})
	for i, at := range list {
		if i > 0 && slices.Contains(list[:i], at) {
			continue
		}
		meta, err := oauthex.GetProtectedResourceMetadata(ctx, at.address, at.resource, c)
		if err != nil || meta == nil {
			continue
		}
		if len(meta.AuthorizationServers) == 0 {
			return nil, tool.Refusal(fmt.Sprintf("The metadata of the tool server %s name no authorization server.", server.Name))
		}
		return meta, nil
	}
	return &oauthex.ProtectedResourceMetadata{Resource: server.URL, AuthorizationServers: []string{origin}}, nil
}

// clientOf returns Parley at an authorization server: the entry's client, an earlier registration, or
// a new one (RFC 7591).
func (s *Service) clientOf(ctx context.Context, c *http.Client, server toolset.Server, p place) (client, error) {
	methods := p.meta.TokenEndpointAuthMethodsSupported
	if a := server.Auth; a.ClientID != "" {
		own := client{ID: a.ClientID, Named: a.ClientSecret, Style: oauth2.AuthStyleInParams}
		if own.Named != "" && (methods == nil || slices.Contains(methods, "client_secret_basic")) {
			own.Style = oauth2.AuthStyleInHeader
		}
		return own, nil
	}
	redirect := s.Base + CallbackPath
	sealed, err := s.Store.Client(ctx, server.ID, p.meta.Issuer, redirect)
	if err != nil {
		return client{}, err
	}
	var known client
	if sealed != nil {
		return known, s.open(sealed, &known, clientPurpose, server.ID.String(), p.meta.Issuer)
	}
	if p.meta.RegistrationEndpoint == "" {
		return known, tool.Refusal(fmt.Sprintf("The authorization server %s registers no clients by itself. Register Parley there "+
			"with the redirect address %s, and add the tool server with its client_id.", hostName(p.meta.Issuer), redirect))
	}
	answer, err := oauthex.RegisterClient(ctx, p.meta.RegistrationEndpoint, registrationOf(redirect, methods, p.scopes), c)
	if err != nil {
		return known, tool.Refusal(fmt.Sprintf("The authorization server %s has not registered Parley. Register it there with the "+
			"redirect address %s, and add the tool server with its client_id.", hostName(p.meta.Issuer), redirect))
	}
	known = client{ID: answer.ClientID, Secret: answer.ClientSecret, Style: oauth2.AuthStyleInParams}
	if known.Secret != "" && answer.TokenEndpointAuthMethod != "client_secret_post" {
		known.Style = oauth2.AuthStyleInHeader
	}
	if sealed, err = s.seal(known, clientPurpose, server.ID.String(), p.meta.Issuer); err != nil {
		return known, err
	}
	return known, s.Store.PutClient(ctx, server.ID, p.meta.Issuer, redirect, sealed)
}

// registrationOf describes Parley to an authorization server. Without a secret PKCE protects the code.
func registrationOf(redirect string, methods, scopes []string) *oauthex.ClientRegistrationMetadata {
	m := &oauthex.ClientRegistrationMetadata{ClientName: "Parley", RedirectURIs: []string{redirect},
		GrantTypes:    []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "client_secret_basic", Scope: strings.Join(scopes, " ")}
	for _, method := range []string{"client_secret_post", "none"} {
		if slices.Contains(methods, method) {
			m.TokenEndpointAuthMethod = method
		}
	}
	return m
}

// hostName returns the host of an address, for a text.
func hostName(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "without a valid address"
}
