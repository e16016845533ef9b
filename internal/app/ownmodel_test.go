package app

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

const providerKey = "sk-of-the-workspace-0123456789"

// TestWorkspacesHaveOwnProviders has a provider of a workspace, with a key in the vault. Its models
// get the key, and those of another workspace do not exist. A changed key applies to the next
// request; an address of the operator's network, a host without the key and a missing value are
// reported to the administrator.
func TestWorkspacesHaveOwnProviders(t *testing.T) {
	t.Parallel()
	script := modeltest.Say("OK")
	server := modeltest.OpenAI(script)
	t.Cleanup(server.Close)
	pool := dbtest.New(t)
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	secrets := vault.New(pool, keys)
	if err := secrets.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	spaces, own := workspace.New(pool), modelset.New(pool)
	ws, err := spaces.Create(t.Context(), "acme", "", "")
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host := net.JoinHostPort("models.example.com", at.Port())
	open := func(allow ...string) *models {
		guard, err := egress.New(egress.Config{Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return newModels(Config{}, func() (model.Model, error) {
			return builtin.New(), nil
		}, workspace.New(pool), ownProviders{own, secrets, guard})
	}
	register := func(value string, hosts ...string) {
		t.Helper()
		r := vault.Registration{Name: "HOUSE_KEY", Hosts: hosts, AllowHTTP: true}
		if value != "" {
			r.Value = vault.NewValue([]byte(value))
		}
		if _, err := secrets.Register(t.Context(), ws.ID, r, "test"); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(m *models, name string) (failed string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		result, err := m.testModel(ctx, ws.ID, name)
		if err != nil {
			t.Fatal(err)
		}
		if result.Error != nil {
			failed = *result.Error
		}
		return failed
	}
	allowed := "http://" + host + "=" + at.Host
	if failed := ask(open(allowed), "house/llama"); !strings.Contains(failed, "unknown model") {
		t.Errorf("before the provider exists: %s", failed)
	}
	if _, err := own.Set(t.Context(), ws.ID, modelset.Provider{Name: "house", BaseURL: "http://" + host + "/v1",
		Credential: "HOUSE_KEY"}); err != nil {
		t.Fatal(err)
	}
	if failed := ask(open(allowed), "house/llama"); !strings.Contains(failed, "parley secrets set HOUSE_KEY --host "+host) {
		t.Errorf("without the credential: %s", failed)
	}
	register("", host)
	if failed := ask(open(allowed), "house/llama"); !strings.Contains(failed, "has no value") {
		t.Errorf("without a value: %s", failed)
	}
	m := open(allowed)
	for _, key := range []string{providerKey, providerKey + "-new"} {
		register(key, host)
		if failed := ask(m, "house/llama"); failed != "" {
			t.Fatalf("with the key: %s", failed)
		}
		all := script.Requests()
		if got := all[len(all)-1].Header.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("the provider got %q", got)
		}
	}
	called := len(script.Requests())
	register("", "other.example.com")
	if failed := ask(open(allowed), "house/llama"); !strings.Contains(failed, "may not be sent to its host") {
		t.Errorf("a key for another host: %s", failed)
	}
	register("", host)
	if _, err := own.Set(t.Context(), ws.ID, modelset.Provider{Name: "local", BaseURL: "http://localhost:" + at.Port() + "/v1"}); err != nil {
		t.Fatal(err)
	}
	if failed := ask(open(), "local/llama"); !strings.Contains(failed, "The address of the provider local") {
		t.Errorf("an address that is not public: %s", failed)
	}
	other, err := spaces.Create(t.Context(), "other", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Model(t.Context(), other.ID, "house/llama"); err == nil {
		t.Error("another workspace has the provider")
	}
	if n := len(script.Requests()); n != called {
		t.Errorf("%d refused requests reached the provider", n-called)
	}
}

// TestSilentModelNamesItsLimit has providers that send no reply, or a part of one, and then nothing.
func TestSilentModelNamesItsLimit(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"before the reply": "",
		"within the reply": "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begin != "" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				select {
				case <-r.Context().Done():
				case <-end:
				}
			}))
			t.Cleanup(func() { close(end); server.Close() })
			m, err := newModels(Config{OpenAIBaseURL: server.URL, OpenAIKey: "k", ModelTimeout: time.Second}, nil, nil, ownProviders{}).
				ofServer("openai/m")
			if err != nil {
				t.Fatal(err)
			}
			failed, ok := errors.AsType[*model.Error](askModel(t.Context(), m))
			if !ok || !failed.Retryable || failed.Message != "The agent's model did not answer in time. Send the message again." ||
				failed.Hint != "The provider sent nothing for 1s. PARLEY_MODEL_TIMEOUT sets this limit." {
				t.Errorf("%+v", failed)
			}
		})
	}
}
