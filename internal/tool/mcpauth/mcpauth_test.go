package mcpauth_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest/canary"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/tool/mcptool"
)

// TestTokensAreObtainedAndRefreshed connects a server, and lets its tokens end in each way. No token
// is in a result, an error, a log or, unsealed, in the database.
func TestTokensAreObtainedAndRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.add(t, crm)
	said := ""
	uses := func(what string, refreshes int) {
		t.Helper()
		text, err := w.whoami(t, "")
		if err != nil || !strings.HasPrefix(text, "with Bearer ") || w.auth.Count("refresh") != refreshes {
			t.Errorf("%s: %q, %v, %d refreshes", what, text, err, w.auth.Count("refresh"))
		}
		said += text
	}
	unconnected := func(what string) {
		t.Helper()
		_, err := w.whoami(t, "")
		if err == nil || !strings.Contains(err.Error(), "parley tools connect crm") {
			t.Errorf("%s: %v", what, err)
		}
	}
	unconnected("before")
	w.connect(t, "")
	uses("connected", 0)
	w.auth.Revoke(false)
	uses("the access token is revoked", 1)
	w.auth.Revoke(true)
	unconnected("all tokens are revoked")
	w.auth.SetLife(10 * time.Second)
	w.connect(t, "")
	w.auth.SetLife(time.Hour)
	uses("the access token is about to end", 2)
	uses("afterwards", 2)
	if n := w.auth.Count("register"); n != 1 {
		t.Errorf("%d registrations", n)
	}
	if err := w.store.RemoveGrant(t.Context(), w.workspace, "crm", grants(t, w)[0].ID); err != nil {
		t.Fatal(err)
	}
	unconnected("disconnected")
	w.connect(t, "")

	for _, secret := range w.auth.Issued() {
		if !strings.HasPrefix(secret, "oauthtest-") {
			t.Fatalf("%q", secret)
		}
		canary.Sweep(t, secret, canary.Bytes("results", []byte(said)), canary.Bytes("log", append(w.log.Bytes(), "log"...)),
			canary.Bytes("tables", dump(t, w)))
	}
}

// grants lists the grants of the server.
func grants(t *testing.T, w *world) []toolset.Grant {
	t.Helper()
	list, err := w.store.Grants(t.Context(), w.workspace, "crm")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// dump returns the rows of all tables that the connections write.
func dump(t *testing.T, w *world) (text []byte) {
	t.Helper()
	for _, table := range []string{"tool_grants", "tool_clients", "tool_links", "tool_servers", "admin_log", "egress_requests"} {
		rows, err := w.pool.Query(t.Context(), "SELECT to_jsonb(x)::text FROM "+table+" x")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var row string
			if err := rows.Scan(&row); err != nil {
				t.Fatal(err)
			}
			text = append(text, row...)
		}
		rows.Close()
	}
	return text
}

// TestAnswersAreBound changes answers of the authorization server on their way.
func TestAnswersAreBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.add(t, crm)
	refused := func(what, reason string, a mcpauth.Answer, bound string) {
		t.Helper()
		if _, _, err := w.service.Finish(t.Context(), a, bound); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
	state, good := w.authorize(t, w.link(t, ""))
	refused("no cookie", "has not begun", good, "")
	refused("another browser's state", "has not begun", good, state+"x")
	refused("an unknown state", "does not work", mcpauth.Answer{State: "x", Code: good.Code, Issuer: good.Issuer}, "x")
	if _, _, err := w.service.Finish(t.Context(), good, state); err != nil {
		t.Errorf("the right answer: %v", err)
	}
	refused("a replayed answer", "does not work", good, state)
	n := w.auth.Count("code")

	mixed := func(what string, change func(*mcpauth.Answer)) {
		t.Helper()
		state, a := w.authorize(t, w.link(t, ""))
		right := a
		change(&a)
		refused(what, "another authorization server", a, state)
		refused(what+", then the right one", "does not work", right, state)
	}
	mixed("another issuer", func(a *mcpauth.Answer) { a.Issuer = "https://evil.example" })
	mixed("no issuer", func(a *mcpauth.Answer) { a.Issuer = "" })
	if w.auth.Count("code") != n {
		t.Error("a code was exchanged after a mix-up")
	}
	stateA, a := w.authorize(t, w.link(t, ""))
	_, b := w.authorize(t, w.link(t, ""))
	a.Code = b.Code // of another request, with another verifier
	refused("an injected code", "invalid_grant", a, stateA)
	again := w.link(t, "")
	first, old := w.authorize(t, again)
	w.authorize(t, again)
	refused("an earlier request of the link", "does not work", old, first)
	if g := grants(t, w); len(g) != 0 {
		t.Errorf("grants %v", g)
	}
	w.auth.SetDeclines(true)
	declined, no := w.authorize(t, w.link(t, ""))
	refused("declined", mcpauth.ErrDeclined.Error(), no, declined)
}

// TestMetadataReachNothingElse lets a hostile server choose addresses.
func TestMetadataReachNothingElse(t *testing.T) {
	t.Parallel()
	private := egresstest.NewCanary(t)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request) bool
		meta   map[string]any
		reason string
	}{
		"metadata elsewhere": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://evil.example/meta"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, nil, "another host"},
		"a redirect to a private address": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "well-known") {
				http.Redirect(w, r, "https://127.0.0.1:"+private.Port+"/", http.StatusFound)
				return true
			}
			return false
		}, nil, "no valid metadata"},
		"another resource": {metadata(
			`{"resource":"https://other.example/mcp","authorization_servers":["https://auth.example"]}`), nil, "no valid metadata"},
		"a private authorization server": {metadata(`{"resource":"https://crm.example/mcp","authorization_servers":["https://localhost:` +
			private.Port + `"]}`), nil, "not a public name"},
		"an address": {metadata(`{"resource":"https://crm.example/mcp","authorization_servers":["https://127.0.0.1:` +
			private.Port + `"]}`), nil, "IP addresses"},
		"no authorization server": {metadata(`{"resource":"https://crm.example/mcp","authorization_servers":[]}`), nil,
			"name no authorization server"},
		"another issuer":     {nil, map[string]any{"issuer": "https://evil.example"}, "its issuer must be that address"},
		"no PKCE":            {nil, map[string]any{"code_challenge_methods_supported": []string{"plain"}}, "does not support PKCE"},
		"tokens without TLS": {nil, map[string]any{"token_endpoint": "http://auth.example/token"}, "no valid metadata"},
		"a page without TLS": {nil, map[string]any{"authorization_endpoint": "http://auth.example/authorize"}, "no valid metadata"},
		"a script":           {nil, map[string]any{"authorization_endpoint": "javascript:alert(1)"}, "no valid metadata"},
		"registration at a private host": {nil, map[string]any{"registration_endpoint": "https://localhost:" + private.Port},
			"not a public name"},
		"no registration": {nil, map[string]any{"registration_endpoint": nil},
			"Register Parley there with the redirect address https://parley.example/connect/callback"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.answer, nil)
			w.add(t, crm)
			w.auth.Change(c.meta)
			_, _, err := w.service.Begin(t.Context(), w.link(t, ""))
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v", err)
			}
			if _, ok := err.(tool.Refusal); !ok {
				t.Errorf("%T is not for the user", err)
			}
		})
	}
}

// metadata serves other metadata of the resource.
func metadata(text string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "well-known") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, text)
		return true
	}
}

// TestClientSecretGoesToItsHostAlone connects with a client that an administrator has registered. A
// server that names another authorization server does not get its secret.
func TestClientSecretGoesToItsHostAlone(t *testing.T) {
	t.Parallel()
	const secret = "client-secret-4711-value"
	stolen := make(chan string, 10)
	var evil http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, got, _ := r.BasicAuth()
		select {
		case stolen <- id + got + r.FormValue("client_secret"):
		default:
		}
		http.Error(w, "{}", http.StatusBadRequest)
	})
	w := newWorld(t, nil, map[string]http.Handler{"evil.example": evil})
	w.auth.AddClient("parley-crm", secret)
	if _, err := w.vault.Register(t.Context(), w.workspace, vault.Registration{Name: "CRM_CLIENT", Hosts: []string{"auth.example"},
		Value: vault.NewValue([]byte(secret))}, "test"); err != nil {
		t.Fatal(err)
	}
	e := crm
	e.Auth.ClientID, e.Auth.ClientSecret = "parley-crm", "CRM_CLIENT"
	w.add(t, e)
	w.connect(t, "")
	w.auth.Revoke(false)
	if _, err := w.whoami(t, ""); err != nil || w.auth.Count("refresh") != 1 || w.auth.Count("register") != 0 {
		t.Errorf("%v, %d refreshes", err, w.auth.Count("refresh"))
	}
	w.auth.Change(map[string]any{"token_endpoint": "https://evil.example/token"})
	state, a := w.authorize(t, w.link(t, ""))
	if _, _, err := w.service.Finish(t.Context(), a, state); err == nil {
		t.Error("another host granted tokens")
	}
	select {
	case got := <-stolen:
		if !strings.Contains(got, "parley-crm") || strings.Contains(got, secret) {
			t.Errorf("the other host got %q", got)
		}
	default:
		t.Error("the other host was not asked")
	}
}

// TestCallersHaveGrantsOfTheirOwn connects one of two callers, and removes the server.
func TestCallersHaveGrantsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	e := crm
	e.Auth.PerCaller = true
	server := w.add(t, e)
	w.connect(t, "user:anna")
	if _, err := w.whoami(t, "user:anna"); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"user:bob", "caller:anna", ""} {
		if _, err := w.service.OfCaller(w.workspace, other).Token(t.Context(), server, 0); err != mcptool.ErrNotConnected {
			t.Errorf("%q: %v", other, err)
		}
	}
	// A grant that is moved to another holder does not open.
	if _, err := w.pool.Exec(t.Context(), `UPDATE tool_grants SET holder = 'user:bob'`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.OfCaller(w.workspace, "user:bob").Token(t.Context(), server, 0); err == nil || err == mcptool.ErrNotConnected {
		t.Errorf("a moved grant: %v", err)
	}
	if err := w.store.Remove(t.Context(), w.workspace, "crm"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Grants(t.Context(), w.workspace, "crm"); fault.From(err) == nil {
		t.Errorf("after the removal: %v", err)
	}
	var left int
	if err := w.pool.QueryRow(context.WithoutCancel(t.Context()), `SELECT count(*) FROM tool_grants`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d grants are left, %v", left, err)
	}
}
