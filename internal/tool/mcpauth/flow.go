package mcpauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
)

// flow is what an authorization request needs when the browser comes back.
type flow struct {
	client
	Verifier  string   `json:"verifier"`
	Issuer    string   `json:"issuer"`
	NamesSelf bool     `json:"names_self"` // the authorization server names itself in its answers (RFC 9207)
	TokenURL  string   `json:"token_url"`
	Resource  string   `json:"resource"`
	Scopes    []string `json:"scopes"`
}

// Begin makes the authorization request of a link, in place of an earlier one. It returns the address
// to which the browser goes and the state, which binds the answer to this browser. A failure that a
// user can read is a tool.Refusal.
func (s *Service) Begin(ctx context.Context, link toolset.Link) (address, state string, err error) {
	if s.Base == "" {
		return "", "", errNoBase
	}
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	server, err := s.Store.Find(ctx, link.Workspace, link.ServerName)
	if err != nil {
		return "", "", err
	}
	env := s.Open(link.Workspace)
	defer env.Close()
	w := &web{env: env}
	if w.own, err = remote.HostOf(server.URL); err != nil {
		return "", "", err
	}
	p, own, err := s.prepare(ctx, w.httpClient(), server)
	if err != nil {
		return "", "", cmp.Or(w.refused, err)
	}
	if p.scopes, err = s.addScopes(ctx, p.scopes, link); err != nil {
		return "", "", err
	}
	f := flow{client: own, Verifier: oauth2.GenerateVerifier(), Issuer: p.meta.Issuer,
		NamesSelf: p.meta.AuthorizationResponseIssParameterSupported,
		TokenURL:  p.meta.TokenEndpoint, Resource: p.resource, Scopes: p.scopes}
	sealed, err := s.seal(f, flowPurpose, link.ID.String())
	if err != nil {
		return "", "", err
	}
	state = rand.Text()
	if err := s.Store.BeginFlow(ctx, link.ID, state, sealed); err != nil {
		return "", "", err
	}
	request := s.config(own, "", "")
	request.Endpoint.AuthURL, request.Scopes = p.meta.AuthorizationEndpoint, p.scopes
	return request.AuthCodeURL(state, oauth2.S256ChallengeOption(f.Verifier), oauth2.SetAuthURLParam("resource", f.Resource)), state, nil
}

// prepare finds the authorization server of a tool server, and Parley as its client.
func (s *Service) prepare(ctx context.Context, c *http.Client, server toolset.Server) (p place, own client, err error) {
	if p, err = discover(ctx, c, server); err == nil {
		own, err = s.clientOf(ctx, c, server, p)
	}
	return p, own, err
}

// addScopes returns the scopes to ask for. A link that asks for more keeps those of the present grant.
func (s *Service) addScopes(ctx context.Context, scopes []string, link toolset.Link) ([]string, error) {
	if link.Scopes == nil {
		return scopes, nil
	}
	held, _, err := s.Store.Grant(ctx, link.Server, link.Holder)
	return toolset.CleanScopes(slices.Concat(link.Scopes, scopes, held.Scopes)), err
}

// errNoBase is the error of a server without a public address.
const errNoBase = tool.Refusal("This server has no public address, to which an authorization server could send browsers back. " +
	"An administrator sets PARLEY_BASE_URL.")

// CheckBase fails if nothing can be connected.
func (s *Service) CheckBase() error {
	if s == nil || s.Base == "" {
		return errNoBase
	}
	return nil
}

// Answer is how an authorization server answers, in the address to which it sends the browser back.
type Answer struct {
	State, Code, Issuer, Error string
}

// ErrDeclined means that the user has not granted access.
var ErrDeclined = errors.New("mcpauth: the user declined")

// Finish exchanges the code of an answer for a grant, which the caller stores. bound is the state that
// the browser began with. A state works once, and a code is exchanged once.
func (s *Service) Finish(ctx context.Context, a Answer, bound string) (link toolset.Link, g toolset.Grant, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if a.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(bound)) != 1 {
		return link, g, fault.New(fault.ObjectConflict, "This browser has not begun the connection, or has begun "+
			"another one since. Open the link again.")
	}
	if link, err = s.Store.TakeFlow(ctx, a.State); err != nil {
		return link, g, err
	}
	var f flow
	if err := s.open(link.Flow, &f, flowPurpose, link.ID.String()); err != nil {
		return link, g, err
	}
	if a.Issuer != f.Issuer && (a.Issuer != "" || f.NamesSelf) {
		return link, g, tool.Refusal("The answer is from another authorization server than the request went to. Nothing was connected.")
	}
	switch {
	case a.Error == "access_denied":
		return link, g, ErrDeclined
	case a.Error != "" && isCode(a.Error):
		return link, g, tool.Refusal("The authorization server answers " + a.Error + ".")
	case a.Error != "" || a.Code == "":
		return link, g, tool.Refusal("The authorization server gives no valid answer.")
	}
	t, scopes, err := s.exchange(ctx, link, f, a.Code)
	if err != nil {
		return link, g, err
	}
	g = toolset.Grant{Server: link.Server, Holder: link.Holder, Issuer: f.Issuer, Scopes: scopes, ExpiresAt: expiryOf(t)}
	g.Tokens, err = s.seal(t, grantPurpose, g.Server.String(), g.Holder)
	return link, g, err
}

// exchange exchanges a code for tokens.
func (s *Service) exchange(ctx context.Context, link toolset.Link, f flow, code string) (t tokens, scopes []string, err error) {
	env := s.Open(link.Workspace)
	defer env.Close()
	w := &web{env: env, secret: f.Named, resource: f.Resource}
	secret, err := w.standIn(ctx)
	if err != nil {
		return t, nil, err
	}
	token, err := s.config(f.client, f.TokenURL, secret).Exchange(context.WithValue(ctx, oauth2.HTTPClient, w.httpClient()), code,
		oauth2.VerifierOption(f.Verifier))
	if err != nil {
		reason, failed := reasonOf(err)
		if failed == "invalid_client" && f.Named == "" {
			err = s.Store.ForgetClient(ctx, link.Server, f.Issuer)
		} else {
			err = nil
		}
		return t, nil, errors.Join(tool.Refusal(reason), err)
	}
	if err := checkToken(token); err != nil {
		return t, nil, err
	}
	scopes = f.Scopes
	if granted, ok := token.Extra("scope").(string); ok && granted != "" {
		scopes = strings.Fields(granted)
	}
	return tokens{client: f.client, TokenURL: f.TokenURL, Resource: f.Resource}.with(token), scopes, nil
}
