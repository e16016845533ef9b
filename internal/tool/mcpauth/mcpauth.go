// Package mcpauth obtains and refreshes the tokens of tool servers with OAuth 2.1, as MCP defines it:
// it finds the authorization server, registers Parley there, sends a browser to it and exchanges the
// code that comes back.
//
// It promises: a token is in the database only sealed, and in no error. A code is exchanged only at
// the authorization server that the request went to, with the verifier and the state of that request.
// A server's metadata decides neither which other hosts get a secret of the workspace nor whether a
// private address is reached. Of several replicas that refresh a grant, one does.
package mcpauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
)

// CallbackPath is the path to which authorization servers send browsers back.
const CallbackPath = "/connect/callback"

// Service connects tool servers. All exported fields are required.
type Service struct {
	Store *toolset.Store
	Keys  *vault.Keyring
	Base  string // public address of this service; "": nothing can be connected
	// Open opens an environment for requests, with the credentials of the workspace.
	Open func(workspace uuid.UUID) Env
	Log  *slog.Logger

	refreshes sync.Map // refreshKey to *refreshing
}

// Env makes requests.
type Env interface {
	// Route opens the way to the host of an entry, name:port.
	Route(ctx context.Context, host string, credentials []string) (send remote.Send, stands map[string]string, err error)
	// RoutePublic opens the way to hosts that a server names. stands are the placeholders of the named
	// credentials, which go only to their own hosts.
	RoutePublic(ctx context.Context, credentials []string) (send remote.Send, stands map[string]string, err error)
	Close()
}

// tokens are what a grant seals.
type tokens struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expiry  time.Time `json:"expiry,omitzero"`
	client
	TokenURL string `json:"token_url"`
	Resource string `json:"resource"`
}

// client is Parley at an authorization server.
type client struct {
	ID     string           `json:"client_id"`
	Secret string           `json:"client_secret,omitempty"` // from the registration
	Named  string           `json:"secret_name,omitempty"`   // the credential with the secret, from the entry
	Style  oauth2.AuthStyle `json:"auth_style"`
}

const (
	grantPurpose  = "tool grant"
	clientPurpose = "tool client"
	flowPurpose   = "tool connection"
)

// config returns the configuration of requests to the authorization server. secret stands for the
// client's secret.
func (s *Service) config(c client, tokenURL, secret string) *oauth2.Config {
	if c.Named == "" {
		secret = c.Secret
	}
	return &oauth2.Config{ClientID: c.ID, ClientSecret: secret, RedirectURL: s.Base + CallbackPath,
		Endpoint: oauth2.Endpoint{TokenURL: tokenURL, AuthStyle: c.Style}}
}

// requestTime limits the requests of one step.
const requestTime = 15 * time.Second

// web makes requests in one step of the protocol.
type web struct {
	env      Env
	own      string // host of the tool server, whose address an administrator has chosen; "": none
	secret   string // name of a credential that requests may carry; "": none
	resource string // RFC 8707; added to requests for tokens
	refused  error  // the newest tool.Refusal, which libraries hide
}

// httpClient returns a client for http requests, which does not follow redirects.
func (w *web) httpClient() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := w.withResource(r)
	if err != nil {
		return nil, err
	}
	res, err := w.send(r)
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		w.refused = refused
	}
	return res, err
}

func (w *web) send(r *http.Request) (*http.Response, error) {
	host := remote.HostPort(r.URL)
	if _, wrong := vault.Host(host); wrong != "" {
		return nil, tool.Refusal(fmt.Sprintf("The address %.80q, which the tool server names, has no valid host: %s", host, wrong))
	}
	send, _, err := w.route(r.Context(), host)
	if err != nil {
		return nil, err
	}
	return send("connect", r)
}

func (w *web) route(ctx context.Context, host string) (send remote.Send, stands map[string]string, err error) {
	if host != "" && host == w.own {
		return w.env.Route(ctx, host, nil)
	}
	var names []string
	if w.secret != "" {
		names = []string{w.secret}
	}
	return w.env.RoutePublic(ctx, names)
}

// standIn returns the placeholder of the credential.
func (w *web) standIn(ctx context.Context) (string, error) {
	if w.secret == "" {
		return "", nil
	}
	_, stands, err := w.route(ctx, "")
	return stands[w.secret], err
}

// seal seals a value as JSON.
func (s *Service) seal(value any, purpose string, about ...string) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode a %s: %w", purpose, err)
	}
	sealed, err := s.Keys.Seal(raw, purpose, about...)
	if err != nil {
		return nil, fmt.Errorf("seal a %s: %w", purpose, err)
	}
	return sealed, nil
}

// open is the reverse of seal.
func (s *Service) open(sealed []byte, into any, purpose string, about ...string) error {
	raw, err := s.Keys.Open(sealed, purpose, about...)
	if err != nil {
		return fmt.Errorf("open a %s: %w", purpose, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read a %s: %w", purpose, errors.New("it is not JSON")) // the cause would quote it
	}
	return nil
}

// reasonOf describes a failed request. Answers are not quoted: they can contain tokens.
func reasonOf(err error) (reason, code string) {
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return string(refused), ""
	}
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		code := failed.ErrorCode
		if !isCode(code) {
			code = ""
		}
		if code != "" {
			return "The authorization server answers " + code + ".", code
		}
		status := 0
		if failed.Response != nil {
			status = failed.Response.StatusCode
		}
		return fmt.Sprintf("The authorization server answers HTTP %d.", status), ""
	}
	return "The authorization server gives no valid answer.", ""
}

// isCode reports whether a text is like the code of an error of OAuth.
func isCode(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}
