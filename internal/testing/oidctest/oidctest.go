// Package oidctest runs a small OpenID Connect provider for tests, over HTTP: discovery, an
// authorization endpoint that signs the user in at once, a token endpoint that checks the client,
// the redirect address and PKCE, and keys that can be rotated.
//
// It promises: a code works once. A test chooses the user with SignIn, and breaks the tokens
// with Change.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The client that the provider knows.
const (
	ClientID     = "parley"
	ClientSecret = "oidctest client secret"
)

// Provider is a running provider.
type Provider struct {
	URL string

	mu     sync.Mutex
	user   map[string]any       // claims of the user who is signed in
	change func(map[string]any) // alters the claims of a token; may be nil
	key    jose.JSONWebKey      // that signs
	keys   []jose.JSONWebKey    // public
	codes  map[string]url.Values
	down   bool
}

// New starts a provider that stops at the end of the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{codes: make(map[string]url.Values)}
	p.Rotate(true)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: p.keys})
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	return p
}

// SignIn sets the claims of the user who is signed in at the provider.
func (p *Provider) SignIn(subject, email string, verified bool, groups ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = map[string]any{"sub": subject, "email": email, "email_verified": verified, "name": "User " + subject, "groups": groups}
}

// Change alters the claims of each token before it is signed; nil stops it.
func (p *Provider) Change(f func(claims map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = f
}

// Rotate signs with a new key. An unpublished key gives signatures that are not valid.
func (p *Provider) Rotate(publish bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.key = jose.JSONWebKey{Key: secret, KeyID: rand.Text(), Algorithm: string(jose.ES256), Use: "sig"}
	if publish {
		p.keys = []jose.JSONWebKey{p.key.Public()}
	} else {
		p.key.KeyID = p.keys[0].KeyID
	}
}

// SetDown lets every connection break off, or ends that.
func (p *Provider) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// ExpireCodes forgets the codes that were not used.
func (p *Provider) ExpireCodes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.codes)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []jose.SignatureAlgorithm{jose.ES256}, "scopes_supported": []string{"openid", "email",
			"profile", "groups"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "code_challenge_methods_supported": []string{"S256"},
	})
}

// authorize sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Host == "" || q.Get("client_id") != ClientID {
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}}
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		q.Get("scope") != "openid email profile groups" {
		answer.Set("error", "invalid_request")
	} else {
		code := rand.Text()
		p.mu.Lock()
		p.codes[code] = q
		p.mu.Unlock()
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token exchanges a code for an id_token.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if id != ClientID || secret != url.QueryEscape(ClientSecret) {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := r.PostFormValue("code")
	begun, ok := p.codes[code]
	delete(p.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != begun.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != begun.Get("code_challenge") {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	token, err := p.sign(begun.Get("nonce"))
	if err != nil {
		reply(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	reply(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": token})
}

// sign returns a token of the user. The caller holds mu.
func (p *Provider) sign(nonce string) (string, error) {
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "nonce": nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	for name, value := range p.user {
		claims[name] = value
	}
	if p.change != nil {
		p.change(claims)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, nil)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(body)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
