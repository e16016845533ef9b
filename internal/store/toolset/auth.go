package toolset

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// Auth is how requests to an entry are authorized, besides its headers. The zero Auth is not at all.
type Auth struct {
	OAuth        bool     // OAuth 2.1, as MCP defines it
	PerCaller    bool     // each caller has a grant of its own; false: the workspace has one
	ClientID     string   // at the authorization server; "": registered when first needed
	ClientSecret string   // name of the credential with the client's secret; "": the client has none
	Scopes       []string // to ask for; nil: those that the server names
}

// The words of Auth in the API.
const (
	AuthNone     = "none"
	AuthOAuth    = "oauth"
	PerWorkspace = "workspace"
	PerCaller    = "caller"
)

func (a Auth) kind() string {
	if a.OAuth {
		return AuthOAuth
	}
	return AuthNone
}

func (a Auth) per() string {
	if a.PerCaller {
		return PerCaller
	}
	return PerWorkspace
}

// Words returns the words of an Auth in the API.
func (a Auth) Words() (auth, per string) { return a.kind(), a.per() }

func authOf(r db.ToolServer) Auth {
	a := Auth{OAuth: r.Auth == AuthOAuth, PerCaller: r.AuthPer == PerCaller, Scopes: r.Scopes}
	if r.ClientID != nil {
		a.ClientID = *r.ClientID
	}
	if r.ClientSecretName != nil {
		a.ClientSecret = *r.ClientSecretName
	}
	return a
}

// The limits of an Auth.
const (
	MaxClientID = 512
	MaxScopes   = 32
	maxScope    = 128
)

var (
	scopeText  = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`) // RFC 6749
	secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// authViolations returns the violations of how an entry is authorized.
func (e Entry) authViolations() (vs []fault.Violation) {
	wrong := func(param, rule, message string) {
		vs = append(vs, fault.Violation{Param: "/" + param, Rule: rule, Message: message})
	}
	a := e.Auth
	if !a.OAuth {
		if a.PerCaller || a.ClientID != "" || a.ClientSecret != "" || a.Scopes != nil {
			wrong("auth", "requires", "auth_per, client_id, client_secret_name and scopes need the auth oauth.")
		}
		return vs
	}
	if e.Server().Kind != MCP {
		wrong("auth", "enum", "OAuth is for MCP servers.")
	}
	for name := range e.Headers {
		if strings.EqualFold(name, "authorization") {
			wrong("headers/"+text.PointerToken(name), "enum", "The token of OAuth is in Authorization, so the entry cannot set this header.")
		}
	}
	if u, err := url.Parse(e.URL); err == nil && u.Scheme != "https" && u.Hostname() != "localhost" {
		wrong("url", "format", "A tool server with OAuth has an address with https.")
	}
	if len(a.ClientID) > MaxClientID || !text.IsPrintable(a.ClientID) {
		wrong("client_id", "format", fmt.Sprintf("A client_id has at most %d printable characters.", MaxClientID))
	}
	if a.ClientSecret != "" && (a.ClientID == "" || !secretName.MatchString(a.ClientSecret)) {
		wrong("client_secret_name", "requires", "client_secret_name is the name of a secret, such as CRM_CLIENT_SECRET, and needs a client_id.")
	}
	if len(a.Scopes) > MaxScopes {
		wrong("scopes", "length", fmt.Sprintf("A tool server has at most %d scopes.", MaxScopes))
	}
	for i, s := range a.Scopes {
		if len(s) > maxScope || !scopeText.MatchString(s) {
			wrong(fmt.Sprintf("scopes/%d", i), "format", "A scope is one word of printable ASCII, such as tickets:read.")
		}
	}
	return vs
}

// CleanScopes returns the valid ones of the scopes that a server names, at most MaxScopes.
func CleanScopes(scopes []string) (clean []string) {
	for _, s := range scopes {
		if len(clean) < MaxScopes && len(s) <= maxScope && scopeText.MatchString(s) && !slices.Contains(clean, s) {
			clean = append(clean, s)
		}
	}
	return clean
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
