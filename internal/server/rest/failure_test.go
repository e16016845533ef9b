package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/turn"
)

// TestMistakesTellNothing checks that an internal error is reported as one sentence without
// details, and that a panic affects only its own request.
func TestMistakesTellNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	srv := s.Server(t, nil)
	routes, err := rest.New(srv, func(context.Context) error { panic("the secret plan") })
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, srv.NewRouter(routes))
	s.say(t, "@text 1 delta").rest()
	if _, err := s.pool.Exec(t.Context(), `ALTER TABLE sessions RENAME COLUMN title TO headline`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{{path: "/readyz", key: "-"}, {path: "sessions"}} {
		r := s.get(t, c)
		if r.status != 500 || r.Error.Code != "INTERNAL" || r.Error.Type != "api_error" || r.Error.Message != "Internal error." ||
			strings.Contains(r.text, "title") {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "/healthz", key: "-"}); r.status != 200 {
		t.Errorf("afterwards: %d", r.status)
	}
}

// TestDrainIsNoWarning asks a process that stops whether it is ready, as load balancers do meanwhile.
func TestDrainIsNoWarning(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var out bytes.Buffer
	srv := s.Server(t, func(c *server.Config) { c.Log = slog.New(slog.NewTextHandler(&out, nil)) })
	routes, err := rest.New(srv, func(context.Context) error {
		return fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, "It is stopping."), rest.ErrStopping)
	})
	if err != nil {
		t.Fatal(err)
	}
	router := srv.NewRouter(routes)
	for range 3 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if out.Len() > 0 {
		t.Errorf("the log has:\n%s", &out)
	}
}

// TestDatabaseHangs checks that a database that does not respond is handled like one that is away.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	s := startTurns(t, func(c *server.Config) { c.Timeout = 2 * time.Second }, func(c *turn.Config) { c.StartTimeout = 2 * time.Second })
	s.say(t, "@text 1 delta").rest()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{{path: "sessions"}, {method: "POST", path: "messages", body: body(t, "@text 1 delta")}} {
		r := s.get(t, c)
		if r.status != 503 || r.Error.Code != "UNAVAILABLE" || strings.Contains(r.Error.Message,
			"may have taken effect") != (c.method == "POST") {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
}

// TestABodyThatNeverComes checks that a body that is announced and never arrives blocks neither the
// response nor the connection forever.
func TestABodyThatNeverComes(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.WriteTimeout = 300 * time.Millisecond })
	for request, want := range map[string]int{
		"POST /api/v1/workspaces/demo/messages": 401, "POST /nowhere": 404, "POST /healthz": 405, "GET /healthz": 200, "OPTIONS /healthz": 204,
		"PUT /api/v1/workspaces/demo/files/x/content": 404,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", request)
		read := bufio.NewReader(conn)
		res, err := http.ReadResponse(read, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); res.StatusCode != want || err != nil {
			t.Errorf("%s: %d, %v", request, res.StatusCode, err)
		}
		if _, err := read.ReadByte(); err != io.EOF {
			t.Errorf("%s: the connection is kept: %v", request, err)
		}
		conn.Close()
	}
}
