// Package sso signs users in at an OpenID Connect provider: discovery, the authorization code with
// PKCE, and the check of the id_token.
//
// It promises: each request to the provider has a deadline; a token counts only with a signature of
// the provider, for this client, in time and with the nonce of the flow. It stores nothing.
package sso

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/parley-server/parley/internal/fault"
)

// requestTimeout is the deadline of one request to the provider.
const requestTimeout = 5 * time.Second

// Config describes the provider. Issuer and ClientID are required.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string // "": a public client, which PKCE alone protects
	GroupsClaim  string // default groups
	Roles        Rules
	Name         string // of the provider, on the button; default single sign-on
	// AcceptUnverified creates users with addresses that the provider has not verified. Such an
	// address never connects an identity to a user who exists.
	AcceptUnverified bool
}

// Provider is an identity provider.
type Provider struct {
	Config // with its defaults
	client *http.Client

	mu         sync.Mutex
	discovered *metadata // nil until the first sign-in
}

// metadata is the result of the discovery.
type metadata struct {
	*oidc.Provider
	Scopes      []string `json:"scopes_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// New returns a provider. It sends no request: the provider may be down.
func New(cfg Config) *Provider {
	cfg.GroupsClaim = cmp.Or(cfg.GroupsClaim, "groups")
	cfg.Name = cmp.Or(cfg.Name, "single sign-on")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // sign-ins are rare
	return &Provider{Config: cfg, client: &http.Client{Transport: transport, Timeout: requestTimeout}}
}

// Flow is a sign-in that has begun.
type Flow struct {
	Redirect string // address of the server that the provider leads back to
	State    string
	Nonce    string
	Verifier string // of PKCE
}

// Claims are what the provider asserts about a user.
type Claims struct {
	Subject  string // issuer and subject
	Email    string
	Verified bool // the address
	Name     string
	Groups   []string
}

// AuthURL returns the address at which the user signs in.
func (p *Provider) AuthURL(ctx context.Context, f Flow) (string, error) {
	meta, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(meta, f).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Exchange returns the claims for the code that the provider has sent.
func (p *Provider) Exchange(ctx context.Context, f Flow, code string) (Claims, error) {
	meta, err := p.discover(ctx)
	if err != nil {
		return Claims{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(meta, f).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < 500 {
		return Claims{}, p.refusal(err)
	}
	if err != nil {
		return Claims{}, p.unavailable(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := meta.Verifier(&oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Claims{}, p.refusal(err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return Claims{}, p.refusal(errors.New("the nonce is not that of the sign-in"))
	}
	return p.claims(id)
}

// discover returns the addresses and keys of the provider. Only success is remembered.
func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	p.mu.Lock()
	meta := p.discovered
	p.mu.Unlock()
	if meta != nil {
		return meta, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.Issuer)
	if err != nil {
		return nil, p.unavailable(err)
	}
	meta = &metadata{Provider: provider}
	if err := provider.Claims(meta); err != nil {
		return nil, p.unavailable(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discovered = meta
	return meta, nil
}

// oauth returns the client of the provider. Some providers send groups for a scope of that name.
func (p *Provider) oauth(meta *metadata, f Flow) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if slices.Contains(meta.Scopes, p.GroupsClaim) {
		scopes = append(scopes, p.GroupsClaim)
	}
	at := meta.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInHeader
	if p.ClientSecret == "" || len(meta.AuthMethods) > 0 && !slices.Contains(meta.AuthMethods, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: at, RedirectURL: f.Redirect, Scopes: scopes}
}

// claims reads a verified token.
func (p *Provider) claims(id *oidc.IDToken) (Claims, error) {
	var known struct {
		Email      string `json:"email"`
		Verified   any    `json:"email_verified"` // some providers send a string
		Name       string `json:"name"`
		Authorized string `json:"azp"`
	}
	var all map[string]any
	if err := errors.Join(id.Claims(&known), id.Claims(&all)); err != nil {
		return Claims{}, p.refusal(err)
	}
	if known.Authorized != "" && known.Authorized != p.ClientID {
		return Claims{}, p.refusal(fmt.Errorf("the token was issued to %q", known.Authorized))
	}
	c := Claims{Subject: id.Issuer + " " + id.Subject, Email: strings.TrimSpace(known.Email), Name: strings.TrimSpace(known.Name)}
	c.Verified = known.Verified == true || known.Verified == "true"
	switch groups := all[p.GroupsClaim].(type) {
	case string:
		c.Groups = []string{groups}
	case []any:
		for _, g := range groups {
			if text, ok := g.(string); ok {
				c.Groups = append(c.Groups, text)
			}
		}
	}
	return c, nil
}

// unavailable is the error of a provider that does not answer as it should.
func (p *Provider) unavailable(err error) error {
	return &Error{fault.New(fault.Unavailable, "Cannot reach %s. Try again in a minute, or sign in with a password.", p.Name), err}
}

// refusal is the error of a sign-in that must not succeed.
func (p *Provider) refusal(err error) error {
	return &Error{fault.New(fault.InsufficientScope, "The sign-in at %s is not valid. Begin again.", p.Name), err}
}

// Error is a fault for the user with its cause, which is for the log only.
type Error struct {
	Fault error
	Cause error
}

func (e *Error) Error() string { return e.Cause.Error() }

// Unwrap returns the fault.
func (e *Error) Unwrap() error { return e.Fault }
