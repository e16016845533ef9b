package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/turn"
)

// TestDevelopmentModeAnswersNoForeignPage checks a page whose host name was rebound to this
// machine: for its browser it has the same origin, so it could read every response and set almost
// any header.
func TestDevelopmentModeAnswersNoForeignPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, base string
		header     []string
		status     int
	}{
		{"127.0.0.1:8080", "", nil, 200},
		{"localhost:8080", "", nil, 200},
		{"LOCALHOST", "", nil, 200},
		{"chat.localhost:8080", "", nil, 200},
		{"[::1]:8080", "", nil, 200},
		{"192.168.1.5:8080", "", nil, 200}, // an address cannot be rebound
		{"dev.example", "https://dev.example/parley", nil, 200},
		{"evil.example:8080", "", nil, 403},
		{"evil.example:8080", "", []string{"X-Forwarded-For", "192.0.2.1"}, 403},
		{"evil.example", "https://dev.example", nil, 403},
		{"localhost.evil.example", "", nil, 403},
		{"127.0.0.1.evil.example", "", nil, 403},
		{"", "", nil, 403},
		{"127.0.0.1:8080", "", []string{"Origin", "http://localhost:3000"}, 200},
		{"127.0.0.1:8080", "https://dev.example", []string{"Origin", "https://dev.example"}, 200},
		{"127.0.0.1:8080", "", []string{"Origin", "https://evil.example"}, 403},
		{"127.0.0.1:8080", "", []string{"Origin", "http://192.168.1.5"}, 403},
		{"127.0.0.1:8080", "", []string{"Origin", "null"}, 403},
	} {
		d, err := server.New(server.Config{
			EventLog: &eventlog.Log{}, Sessions: &session.Store{}, Workspaces: &workspace.Store{}, Keys: &apikey.Store{},
			Turns: &turn.Service{}, Skills: &skill.Store{}, Agents: &agent.Store{},
			Files: &filestore.Store{}, Callbacks: &callback.Store{}, BaseURL: c.base, Local: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		d.Handler(func(w http.ResponseWriter, _ *http.Request) error { return server.WriteData(w, 200, "x") }).ServeHTTP(w, r)
		if w.Code != c.status || c.status == 403 && !strings.Contains(w.Body.String(), "ORIGIN_NOT_ALLOWED") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// TestEveryForwardingHeaderIsNoticed checks that a request through any proxy does not count as one
// from this machine.
func TestEveryForwardingHeaderIsNoticed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Client-Cert", "X-Real-IP",
		"CF-Connecting-IP",
		"CF-Connecting-IPv6", "CF-Ray", "CDN-Loop", "True-Client-IP", "X-Client-IP", "Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP",
		"Fly-Client-IP", "X-Azure-ClientIP", "X-Envoy-External-Address", "X-Original-Forwarded-For",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if server.Forwarded(r) {
			t.Fatal("nothing was forwarded")
		}
		r.Header.Set(name, "192.0.2.1")
		if !server.Forwarded(r) {
			t.Errorf("%s is not noticed", name)
		}
	}
}
