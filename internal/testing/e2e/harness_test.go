// Package e2e_test runs the real binary as real processes, and tests kill -9, SIGSTOP, SIGTERM and
// lost connections.
package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// binary is this test itself: with PARLEY_E2E set it runs as parley, including the race detector.
var binary = os.Args[0]

func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_E2E") != "" {
		os.Unsetenv("PARLEY_E2E")
		os.Exit(cli.Main())
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// brief is the client of calls that do not stream.
var brief = &http.Client{Timeout: wait.Limit}

// vaultKey is the master key of every world.
var vaultKey = vault.GenerateKey()

// world is a database with a workspace "w" and a key for it.
type world struct {
	dsn  string
	pool *pgxpool.Pool
	key  string
	may  string   // a key that may allow what the agent requests; created by approver
	wrap []string // command that starts the servers; nil: none
	env  []string // further environment of commands

	client *http.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	slow.Test(t, "runs processes")
	return newWorldOn(t, dbtest.DSN(t))
}

func newWorldOn(t *testing.T, dsn string) *world {
	t.Helper()
	slow.Test(t, "runs processes")
	w := &world{dsn: dsn, client: http.DefaultClient}
	w.pool = dbtest.Pool(t, w.dsn)
	w.parley(t, "workspace", "create", "w", "--messages-per-minute", "0", "--calls-per-minute", "0", "--open-streams", "0")
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "test", "--scope", "chat", "--scope", "sessions:read")
	return w
}

// approver returns a key that may allow a wiki_write for which w.key needs an approval.
func (w *world) approver(t *testing.T) string {
	t.Helper()
	if w.may == "" {
		w.may = w.parley(t, "keys", "create", "--workspace", "w", "--name", "approver", "--scope", "chat", "--scope", "wiki:write")
	}
	return w.may
}

// decision returns an approver's request.
func (w *world) decision(t *testing.T, s *server, path, decision string) *http.Request {
	t.Helper()
	req := s.post(path, map[string]string{"decision": decision})
	req.Header.Set("Authorization", "Bearer "+w.approver(t))
	return req
}

// parley runs an administrator's command and returns its output.
func (w *world) parley(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, err := w.run("", args...)
	if err != nil {
		t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, errs)
	}
	return strings.TrimSpace(out)
}

// run runs a command with the given stdin, which may be empty.
func (w *world) run(stdin string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(append(environ(), "DATABASE_URL="+w.dsn, "PARLEY_VAULT_KEY="+vaultKey), w.env...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// environ returns this process's environment without Parley's settings.
func environ() []string {
	env := []string{"PARLEY_E2E=1"}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PARLEY_") && !strings.HasPrefix(e, "OPENAI_") && !strings.HasPrefix(e, "ANTHROPIC_") &&
			!strings.HasPrefix(e, "DATABASE_URL=") {
			env = append(env, e)
		}
	}
	return env
}

// server is the process of one replica.
type server struct {
	cmd  *exec.Cmd
	url  string
	said *record // stdout and stderr
	gone chan struct{}
}

// record stores everything that is written to it.
type record struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, p...)
	return len(p), nil
}

func (r *record) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.text)
}

// serve starts a replica with additional env and flags and waits until it is ready.
func (w *world) serve(t *testing.T, env []string, flags ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	return w.serveAt(t, addr, env, flags...)
}

// serveAt is serve with a given address.
func (w *world) serveAt(t *testing.T, addr string, env []string, flags ...string) *server {
	t.Helper()
	env = append([]string{"DATABASE_URL=" + w.dsn, "PARLEY_DURABILITY=off", "PARLEY_VAULT_KEY=" + vaultKey}, env...)
	return startServer(t, addr, "/readyz", env, append(append(w.wrap, binary, "serve", "--listen", addr), flags...)...)
}

// startServer starts a process that serves HTTP at an address, and waits until it is ready.
func startServer(t *testing.T, addr, ready string, env []string, line ...string) *server {
	t.Helper()
	s := &server{url: "http://" + addr, said: &record{}, gone: make(chan struct{})}
	s.cmd = exec.Command(line[0], line[1:]...)
	s.cmd.Env = append(environ(), env...)
	out := io.MultiWriter(t.Output(), s.said)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.gone)
	}()
	t.Cleanup(func() {
		s.signal(syscall.SIGCONT)
		s.signal(syscall.SIGKILL)
		wait.Receive(t, "the end of the connection", s.gone)
	})
	wait.For(t, "the server is ready", func() bool {
		select {
		case <-s.gone:
			t.Fatal("the server ended while it started")
		default:
		}
		res, err := brief.Get(s.url + ready)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return s
}

func (s *server) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// kill sends SIGKILL and returns when the process has ended.
func (s *server) kill() {
	s.signal(syscall.SIGKILL)
	select {
	case <-s.gone:
	case <-time.After(wait.Limit):
		panic("the server did not end")
	}
}
