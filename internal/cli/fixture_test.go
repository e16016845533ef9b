package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) {
	http.DefaultClient.Timeout = wait.Limit
	goleak.VerifyTestMain(m)
}

// shell runs command lines in a directory with an environment.
type shell struct {
	t       *testing.T
	dir     string
	environ []string
}

// run is one command line: its stdout, its stderr, its exit code.
func (s shell) run(args ...string) (string, string, int) {
	s.t.Helper()
	return s.pipe(nil, args...)
}

func (s shell) pipe(stdin io.Reader, args ...string) (string, string, int) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(s.t.Context(), cli.Host{Stdin: stdin, Stdout: &out, Stderr: &errs, Environ: s.environ, Dir: s.dir}, args)
	return out.String(), errs.String(), code
}

// must returns the stdout of a command that must succeed.
func (s shell) must(args ...string) string {
	s.t.Helper()
	out, errs, code := s.run(args...)
	if code != 0 {
		s.t.Fatalf("parley %s: exit code %d\n%s", strings.Join(args, " "), code, errs)
	}
	return out
}

// vaultKey is the master key of all services in these tests.
var vaultKey = vault.GenerateKey()

// quick names the tests that run a server under -short.
var quick = []string{"TestSendPrintsTheAnswerAloneOnStdout"}

// server is a running service.
type server struct {
	url    string
	stop   context.CancelFunc
	failed chan error
}

// serve starts a service on a database, with additional settings.
func serve(t *testing.T, dsn, listen string, more ...string) *server {
	t.Helper()
	slow.Test(t, "runs a server", quick...)
	environ := append([]string{"DATABASE_URL=" + dsn, "PARLEY_LISTEN=" + listen, "PARLEY_WORKERS=8", "PARLEY_DURABILITY=off",
		"PARLEY_VAULT_KEY=" + vaultKey}, more...)
	cfg, err := app.Load(app.Sources{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &server{stop: stop, failed: make(chan error, 1)}
	ready := make(chan string, 1)
	go func() {
		s.failed <- app.Serve(ctx, app.Options{Config: cfg, Ready: func(url string) { ready <- url }})
	}()
	select {
	case s.url = <-ready:
	case err := <-s.failed:
		stop()
		t.Fatalf("serve: %v", err)
	}
	t.Cleanup(func() { s.end(t) })
	return s
}

// end stops the service in order, once.
func (s *server) end(t *testing.T) {
	t.Helper()
	if s.failed == nil {
		return
	}
	s.stop()
	if err := wait.Receive(t, "the end of the server", s.failed); err != nil {
		t.Errorf("the service did not stop cleanly: %v", err)
	}
	s.failed = nil
}

// world is a service, a workspace and a shell with a key for it.
func world(t *testing.T, settings ...string) (shell, *server, string) {
	t.Helper()
	slow.Test(t, "runs a server", quick...)
	dsn := dbtest.DSN(t)
	srv := serve(t, dsn, "127.0.0.1:0", settings...)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_DATABASE_URL=" + dsn, "PARLEY_WORKSPACE=test", "PARLEY_URL=" + srv.url,
		"PARLEY_VAULT_KEY=" + vaultKey}}
	sh.must("workspace", "create", "test")
	key := sh.must("keys", "create", "--name", "test", "--scope", "all", "--scope", "admin")
	sh.environ = append(sh.environ, "PARLEY_API_KEY="+strings.TrimSpace(key))
	return sh, srv, dsn
}

// keyboard is a running command that can be interrupted.
type keyboard struct {
	interrupts chan os.Signal
	out, errs  *watched
	code       chan int
}

func (s shell) start(args ...string) *keyboard {
	k := &keyboard{interrupts: make(chan os.Signal, 4), out: newWatched(), errs: newWatched(), code: make(chan int, 1)}
	go func() {
		k.code <- cli.Run(s.t.Context(), cli.Host{Stdout: k.out, Stderr: k.errs, Environ: s.environ, Dir: s.dir, Interrupts: k.interrupts}, args)
	}()
	return k
}

// watched is a buffer whose content can be waited for.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	news chan struct{}
}

func newWatched() *watched { return &watched{news: make(chan struct{}, 1)} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// wait returns once the output contains the text.
func (w *watched) wait(t *testing.T, text string) {
	t.Helper()
	w.waitFrom(t, 0, text)
}

// waitFrom returns once the output contains the text after an offset.
func (w *watched) waitFrom(t *testing.T, from int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("it did not come"))
	defer cancel()
	for !strings.Contains(w.String()[from:], text) {
		select {
		case <-w.news:
		case <-ctx.Done():
			t.Fatalf("%q: %v in %q", text, context.Cause(ctx), w.String())
		}
	}
}
