// Package oauthtest is a small OAuth 2.1 authorization server for tests, and the protection of a
// resource with its tokens: metadata, registration of clients, an authorization endpoint at which
// the user agrees at once, and a token endpoint that checks the client, the redirect address, PKCE
// and the resource, and rotates refresh tokens.
//
// It promises: a code and a refresh token work once. Its handlers must be served under the addresses
// that it is given.
package oauthtest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is an authorization server.
type Server struct {
	URL      string // its issuer
	Resource string // the address of the protected resource

	mu       sync.Mutex
	metadata map[string]any // changed members; nil removes one
	secrets  map[string]string
	codes    map[string]url.Values
	access   map[string]time.Time // ends of tokens
	scopes   map[string]string    // of tokens
	needs    string               // a scope that every request needs; "": none
	refresh  map[string]string    // clients by refresh tokens
	issued   []string
	life     time.Duration
	declines bool
	counts   map[string]int
	members  map[string]any // changed members of answers with tokens
	hold     func()
}

// New returns a server for one resource. Its access tokens live an hour.
func New(issuer, resource string) *Server {
	return &Server{URL: issuer, Resource: resource, metadata: make(map[string]any), secrets: make(map[string]string),
		codes:  make(map[string]url.Values),
		access: make(map[string]time.Time), scopes: make(map[string]string), refresh: make(map[string]string), life: time.Hour,
		counts: make(map[string]int)}
}

// Change changes members of the metadata; nil removes one.
func (s *Server) Change(members map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metadata = members
}

// AddClient registers a client with a secret, which may be empty.
func (s *Server) AddClient(id, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[id] = secret
}

// SetLife sets how long the next access tokens live.
func (s *Server) SetLife(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = d
}

// SetNeeds sets a scope that tokens need besides; "": none.
func (s *Server) SetNeeds(scope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = scope
}

// SetDeclines makes the user decline, or agree again.
func (s *Server) SetDeclines(declines bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declines = declines
}

// ChangeTokens changes members of the next answers with tokens.
func (s *Server) ChangeTokens(members map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = members
}

// SetHold sets a function that runs after each request for tokens was handled, before its answer is
// sent.
func (s *Server) SetHold(hold func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

// Revoke ends every access token, and with all every refresh token, too.
func (s *Server) Revoke(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if all {
		clear(s.refresh)
	}
}

// Issued returns every token, code and secret of a client that was issued.
func (s *Server) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.issued...)
}

// Count returns how often an endpoint was used with success: register, authorize, code or refresh.
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	if hold := s.serve(answer, r); hold != nil && r.URL.Path == "/token" {
		hold()
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client has left
}

// serve handles a request and returns the function that holds its answer back.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) (hold func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/oauth-authorization-server":
		meta := map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
			"registration_endpoint":    s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post", "none"}}
		for name, value := range s.metadata {
			if meta[name] = value; value == nil {
				delete(meta, name)
			}
		}
		reply(w, http.StatusOK, meta)
	case "POST /register":
		s.register(w, r)
	case "GET /authorize":
		s.authorize(w, r)
	case "POST /token":
		s.token(w, r)
	default:
		http.NotFound(w, r)
	}
	return s.hold
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if json.NewDecoder(r.Body).Decode(&asked) != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	id := "client-" + rand.Text()
	asked["client_id"] = id
	if s.secrets[id] = ""; asked["token_endpoint_auth_method"] != "none" {
		s.secrets[id] = s.issue()
		asked["client_secret"], asked["client_secret_expires_at"] = s.secrets[id], 0
	}
	s.counts["register"]++
	reply(w, http.StatusCreated, asked)
}

// authorize sends the browser back with a code.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if _, known := s.secrets[q.Get("client_id")]; err != nil || back.Host == "" || !known {
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}, "iss": {s.URL}}
	switch {
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		q.Get("resource") != s.Resource:
		answer.Set("error", "invalid_request")
	case s.declines:
		answer.Set("error", "access_denied")
	default:
		code := s.issue()
		s.codes[code] = q
		s.counts["authorize"]++
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else if plain, err := url.QueryUnescape(secret); err == nil {
		secret = plain
	}
	if want, known := s.secrets[id]; !known || secret != want {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	if r.PostFormValue("resource") != s.Resource {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_target"})
		return
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		begun, ok := s.codes[code]
		delete(s.codes, code)
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if ok && begun.Get("client_id") == id && begun.Get("redirect_uri") == r.PostFormValue("redirect_uri") &&
			begun.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) {
			s.counts["code"]++
			s.grant(w, id, begun.Get("scope"))
			return
		}
	case "refresh_token":
		old := r.PostFormValue("refresh_token")
		if s.refresh[old] == id {
			delete(s.refresh, old)
			s.counts["refresh"]++
			s.grant(w, id, s.scopes[old])
			return
		}
	}
	reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "not " +
		r.PostFormValue("code") + r.PostFormValue("refresh_token")})
}

// grant issues tokens.
func (s *Server) grant(w http.ResponseWriter, client, scope string) {
	access, refresh := s.issue(), s.issue()
	s.scopes[access], s.scopes[refresh] = scope, scope
	s.access[access], s.refresh[refresh] = time.Now().Add(s.life), client
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(s.life / time.Second),
		"refresh_token": refresh, "scope": cmp.Or(scope, "tools")}
	maps.Copy(answer, s.members)
	reply(w, http.StatusOK, answer)
}

func (s *Server) issue() string {
	secret := "oauthtest-" + rand.Text()
	s.issued = append(s.issued, secret)
	return secret
}

// Protect lets only requests with a valid token reach a resource, and serves the metadata of the
// resource, which is at its own address.
func (s *Server) Protect(next http.Handler) http.Handler {
	at, err := url.Parse(s.Resource)
	if err != nil {
		panic(err)
	}
	known := "/.well-known/oauth-protected-resource" + at.Path
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == known {
			reply(w, http.StatusOK, map[string]any{"resource": s.Resource, "authorization_servers": []string{s.URL},
				"scopes_supported": []string{"tools"}})
			return
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		end, ok := s.access[token]
		lacks := s.needs != "" && !slices.Contains(strings.Fields(s.scopes[token]), s.needs)
		needs := s.needs
		s.mu.Unlock()
		if !ok || time.Now().After(end) {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+at.Scheme+"://"+at.Host+known+`"`)
			http.Error(w, "no valid token", http.StatusUnauthorized)
			return
		}
		if lacks {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+needs+
				`", resource_metadata="`+at.Scheme+"://"+at.Host+known+`"`)
			http.Error(w, "the token lacks a scope", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
