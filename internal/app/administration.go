package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/httptool"
	"github.com/parley-server/parley/internal/toolenv"
)

// Administration returns an HTTP client for a command: its requests do not leave the process, the
// handlers of the administration API serve them on the stores. by names the user in records. The
// master keys are opened for the first request that needs them.
func (s *Stores) Administration(by string) *http.Client {
	return &http.Client{Transport: &ownAPI{stores: s, by: by, plain: s.administration(by, s.Secrets, s.Callbacks, s.Runner)}}
}

// AdministrationURL is the address of requests for the client of Administration. No name resolves
// to it.
const AdministrationURL = "http://database.invalid"

// commandTimeout limits a request of a command: it has no other users to protect.
const commandTimeout = time.Minute

// administration returns the handlers of the administration API.
func (s *Stores) administration(by string, secrets *vault.Store, callbacks *callback.Store, runner *toolenv.Runner) http.Handler {
	connector := newConnector(s.Toolset, runner, secrets.Keyring(), s.config.BaseURL, slog.New(slog.DiscardHandler))
	srv := server.NewForCommand(server.Config{
		Sessions: s.Sessions, Workspaces: s.Workspaces, Keys: s.Keys, Skills: s.Skills, Agents: s.Agents, Files: s.Files,
		Callbacks: callbacks, Vault: secrets, Version: ThisBuild().Version, Timeout: commandTimeout,
	}, by)
	return srv.NewRouter(admin.New(srv, admin.Stores{
		Log: adminlog.New(s.pool), Budgets: s.Budgets, Toolset: s.Toolset, Permissions: s.Permissions, Vault: secrets, Runner: runner,
		Probe: probeOf(runner, connector), Connector: connector, HTTPProbe: httpProbeOf(runner,
			httptool.Sender{Sign: callbacks.SignRequest}), Wiki: s.Wiki, Folders: s.Folders, CheckModel: modelCheck{s.config, s.Modelset,
			false}.Check, Modelset: s.Modelset, TestModel: s.modelsFor(secrets).testModel, Catalog: s.config.catalog,
		DeleteWorkspace: s.DeleteWorkspace, Rehearse: replan.RehearseOn(s.pool),
		Tools: func() []tool.Spec { return nil }, Activity: describeActivity(s.pool),
		System: func(context.Context) (admin.System, error) {
			return admin.System{}, errors.New("only a server describes itself")
		},
	}))
}

// ownAPI serves the requests of a client in this process.
type ownAPI struct {
	stores *Stores
	by     string
	plain  http.Handler // without master keys

	mu     sync.Mutex
	sealed http.Handler // with them; nil until it is needed
}

// RoundTrip implements http.RoundTripper.
func (a *ownAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	handler := a.plain
	if needsMasterKeys(r) {
		var err error
		if handler, err = a.openSealed(r.Context()); err != nil {
			return nil, err
		}
	}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	out := &localResponse{header: make(http.Header), status: http.StatusOK}
	handler.ServeHTTP(out, in)
	return &http.Response{
		Status: http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: out.header,
		Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// needsMasterKeys reports whether a request seals or signs, or calls a tool server.
func needsMasterKeys(r *http.Request) bool {
	switch r.Method {
	case http.MethodPut:
		return strings.Contains(r.URL.Path, "/credentials/")
	case http.MethodPost:
		return strings.HasSuffix(r.URL.Path, "/callback-secret") || strings.HasSuffix(r.URL.Path, "/callback-secret/roll") ||
			strings.HasSuffix(r.URL.Path, "/tool-servers") ||
			strings.HasSuffix(r.URL.Path, "/models/test") || strings.HasSuffix(r.URL.Path, "/config/check") && checksSealed(r) ||
			strings.Contains(r.URL.Path, "/tool-servers/") && (strings.HasSuffix(r.URL.Path, "/refresh") || strings.HasSuffix(r.URL.Path, "/test"))
	}
	return false
}

// checksSealed reports whether changes to check need master keys.
func checksSealed(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		Changes []struct{ Method, Path string }
	}
	if err != nil || json.Unmarshal(body, &in) != nil {
		return false
	}
	return slices.ContainsFunc(in.Changes, func(c struct{ Method, Path string }) bool {
		return c.Method == http.MethodPut && strings.HasPrefix(c.Path, "/credentials/") ||
			c.Method == http.MethodPost && c.Path == "/tool-servers"
	})
}

// openSealed returns the handlers with the master keys.
func (a *ownAPI) openSealed(ctx context.Context) (http.Handler, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sealed == nil {
		secrets, err := a.stores.OpenVault(ctx)
		if err != nil {
			return nil, err
		}
		guard, err := a.stores.config.newGuard()
		if err != nil {
			return nil, err
		}
		runner := toolenv.New(toolenv.Config{Pool: a.stores.pool, Guard: guard, Vault: secrets})
		a.sealed = a.stores.administration(a.by, secrets, callback.NewStore(a.stores.pool, secrets.Keyring(), a.stores.guard), runner)
	}
	return a.sealed, nil
}

// localResponse is a response in memory.
type localResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *localResponse) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *localResponse) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *localResponse) Write(p []byte) (int, error) { return w.body.Write(p) }
