package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) {
	http.DefaultClient.Timeout = wait.Limit
	goleak.VerifyTestMain(m)
}

// vaultKey is the master key of all services in these tests.
var vaultKey = vault.GenerateKey()

// serve runs a service until it is ready or fails. stop returns how it ended.
func serve(t *testing.T, opt app.Options, environ ...string) (at string, stop func() error, err error) {
	t.Helper()
	slow.Test(t, "runs a server")
	opt.Config, err = app.Load(app.Sources{Environ: append([]string{"PARLEY_DURABILITY=off", "PARLEY_VAULT_KEY=" + vaultKey}, environ...)})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	opt.Ready = func(url string) { ready <- url }
	go func() { ended <- app.Serve(ctx, opt) }()
	select {
	case at = <-ready:
	case err = <-ended:
		cancel()
		return "", nil, err
	case <-time.After(wait.Limit):
		cancel()
		t.Fatal("the service is not ready")
	}
	stop = func() error {
		if cancel == nil {
			return nil
		}
		cancel()
		cancel = nil
		return wait.Result(t, "the end of the service", func() error { return <-ended })
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return at, stop, nil
}

func exec(t *testing.T, dsn, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // for clean-up, too
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func TestServeRefusesADatabaseThatForgets(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	u, _ := url.Parse(dsn)
	exec(t, dsn, "ALTER DATABASE "+strings.TrimPrefix(u.Path, "/")+" SET synchronous_commit = off")
	_, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_DURABILITY=require")
	if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(e.Why, "synchronous_commit=off") {
		t.Errorf("serve: %v", err)
	}
}

func TestServeRejectsADatabaseThatLacksCharacters(t *testing.T) {
	t.Parallel()
	dsn := encoded(t, dbtest.DSN(t), "SQL_ASCII")
	_, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0")
	if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(e.Do, "ENCODING 'UTF8'") {
		t.Errorf("serve: %v", err)
	}
}

func TestMigrateCheckChangesNothing(t *testing.T) {
	t.Parallel()
	slow.Test(t, "migrates databases")
	dsn := dbtest.Empty(t)
	opt := app.Options{}
	_, _, err := serve(t, opt, "DATABASE_URL="+dsn, "PARLEY_MIGRATE=check", "PARLEY_LISTEN=127.0.0.1:0")
	if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(e.Do, "parley migrate up") {
		t.Fatalf("an empty database: %v", err)
	}
	_, stop, err := serve(t, opt, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, _, err = serve(t, opt, "DATABASE_URL="+dsn, "PARLEY_MIGRATE=check", "PARLEY_LISTEN=127.0.0.1:0"); err != nil {
		t.Errorf("a migrated database: %v", err)
	}
}

func TestServeSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"":                                   "DATABASE_URL is not set",
		"DATABASE_URL=:::":                   "DATABASE_URL cannot be read",
		"PARLEY_HTTP=false PARLEY_WORKERS=0": "nothing to do",
		"PARLEY_VAULT_KEY=":                  "PARLEY_VAULT_KEY_FILE is not set",
	} {
		if _, _, err := serve(t, app.Options{}, strings.Fields(environ)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", environ, err)
		}
	}
	dsn := dbtest.DSN(t)
	_, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_MODEL=openai/gpt-5-mini", "PARLEY_LISTEN=127.0.0.1:0")
	if err == nil || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("a model without its key: %v", err)
	}
}

func TestServeRefusesATransactionPooler(t *testing.T) {
	t.Parallel()
	dsn := deaf(t, dbtest.DSN(t))
	_, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0")
	if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(e.Why, "LISTEN") {
		t.Errorf("serve: %v", err)
	}
}

// deaf returns a DSN on which no notification arrives, as through a pooler that reassigns the
// connection between transactions.
func deaf(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconnAddress(config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial(network, address)
			if err != nil {
				front.Close()
				continue
			}
			go func() { io.Copy(back, front); back.Close() }()
			go func() { filter(front, back); front.Close() }()
		}
	}()
	t.Cleanup(func() { l.Close(); wait.Receive(t, "the end", done) })
	u, _ := url.Parse(dsn)
	q := u.Query()
	q.Set("host", "127.0.0.1")
	q.Set("port", l.Addr().String()[strings.LastIndex(l.Addr().String(), ":")+1:])
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// filter copies the server's messages without the notifications.
func filter(front, back net.Conn) {
	in := pgproto3.NewFrontend(back, back)
	for {
		msg, err := in.Receive()
		if err != nil {
			return
		}
		if _, drop := msg.(*pgproto3.NotificationResponse); drop {
			continue
		}
		out, err := msg.Encode(nil)
		if err != nil {
			return
		}
		if _, err := front.Write(out); err != nil {
			return
		}
	}
}

func pgconnAddress(c *pgx.ConnConfig) (network, address string) {
	if strings.HasPrefix(c.Host, "/") {
		return "unix", filepath.Join(c.Host, ".s.PGSQL.5432")
	}
	return "tcp", net.JoinHostPort(c.Host, "5432")
}

func TestDevModeStartsTwiceTheSame(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".parley")
	environ := []string{"DATABASE_URL=" + dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0"}
	opt := app.Options{DevDir: dir}
	var out strings.Builder
	opt.Out = &out
	at, stop, err := serve(t, opt, environ...)
	if err != nil {
		t.Fatal(err)
	}
	first, err := app.ReadDevEnv(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.URL != at || first.Workspace != "demo" || first.APIKey == "" || "DATABASE_URL="+first.DatabaseURL != environ[0] {
		t.Errorf("dev.env: %+v", first)
	}
	if info, err := os.Stat(filepath.Join(dir, "dev.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("dev.env: %v, %v", info.Mode(), err)
	}
	for _, want := range []string{"dev mode", "builtin/guide", "demo: 3 skills, 5 wiki pages, 2 files", "written to .parley/dev.env", at,
		"curl -N", "ready in"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), first.APIKey) {
		t.Error("the key was printed")
	}
	if code := get(t, first, "sessions"); code != http.StatusOK {
		t.Errorf("the key gets status %d", code)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	out.Reset()
	if _, _, err = serve(t, opt, environ...); err != nil {
		t.Fatal(err)
	}
	second, err := app.ReadDevEnv(dir)
	if err != nil || second.APIKey != first.APIKey {
		t.Errorf("another key: %v", err)
	}
	if !strings.Contains(out.String(), "up to date") || !strings.Contains(out.String(), "demo: 3 skills, 5 wiki pages, 2 files") {
		t.Errorf("the second start:\n%s", &out)
	}
	cfg, _ := app.Load(app.Sources{Environ: environ})
	admin, err := app.OpenStores(t.Context(), cfg, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	demo, err := admin.Workspaces.Find(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := admin.Keys.List(t.Context(), demo.ID)
	if err != nil || len(keys) != 1 || !keys[0].Loopback {
		t.Errorf("keys %+v, %v", keys, err)
	}
	docs, err := admin.Wiki.List(t.Context(), demo.ID, "")
	for _, d := range docs {
		if d.Version != 1 {
			t.Errorf("%s was written again", d.Path)
		}
	}
	if err != nil || len(docs) != 7 {
		t.Errorf("%d documents, %v", len(docs), err)
	}

	sourced, _ := app.Load(app.Sources{Environ: []string{"PARLEY_" + environ[0]}})
	// like a shell with dev.env in another folder
	elsewhere, err := app.OpenStores(t.Context(), sourced, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	if _, err := elsewhere.OpenVault(t.Context()); err == nil || !strings.Contains(err.Error(),
		"Run the command there, or set PARLEY_VAULT_KEY_FILE") {
		t.Errorf("the vault opened elsewhere: %v", err)
	}
}

// TestDevModeAsRootHasASandbox starts as root without a setting for the users of commands.
func TestDevModeAsRootHasASandbox(t *testing.T) {
	t.Parallel()
	need.Root(t)
	if _, err := osexec.LookPath("bwrap"); err != nil {
		need.Missing(t, "bubblewrap is not installed")
	}
	environ := []string{"DATABASE_URL=" + dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_SANDBOX=require"}
	if _, _, err := serve(t, app.Options{}, environ...); err == nil || !strings.Contains(err.Error(),
		"the service is root") && !strings.Contains(err.Error(), "The service is root") {
		t.Errorf("outside of development mode: %v", err)
	}
	var out strings.Builder
	if _, _, err := serve(t, app.Options{DevDir: filepath.Join(t.TempDir(), ".parley"), Out: &out}, environ...); err != nil {
		t.Fatal(err)
	}
	watched := strings.Contains(out.String(), "their memory is watched, not limited by the kernel")
	_, _, err := serve(t, app.Options{DevDir: filepath.Join(t.TempDir(), ".parley")}, append(environ, "PARLEY_SANDBOX=require-limits")...)
	if refused := err != nil && strings.Contains(err.Error(),
		"PARLEY_SANDBOX is require-limits. The kernel does not limit the memory"); refused != watched {
		t.Errorf("the start prints\n%s\nand with require-limits it ends with %v", &out, err)
	}
	if !strings.Contains(out.String(), "the agent can run commands") {
		t.Errorf("the start prints\n%s", &out)
	}
}

func TestDevModeTakesTheNextFreePort(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil { // otherwise another process uses it
		defer l.Close()
	}
	var out strings.Builder
	at, _, err := serve(t, app.Options{DevDir: t.TempDir(), Out: &out}, "DATABASE_URL="+dbtest.DSN(t))
	if err != nil || at == "http://127.0.0.1:8080" || !strings.Contains(out.String(), "127.0.0.1:8080 is in use; trying 127.0.0.1:8081") {
		t.Errorf("%s: %v\n%s", at, err, &out)
	}
}

func TestAnAddressThatWasAskedForIsTakenOrRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dsn := dbtest.DSN(t)
	for _, dir := range []string{"", t.TempDir()} {
		_, _, err := serve(t, app.Options{DevDir: dir}, "DATABASE_URL="+dsn, "PARLEY_LISTEN="+l.Addr().String())
		if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(e.Why, l.Addr().String()+" cannot be listened on") {
			t.Errorf("in %q: %v", dir, err)
		}
	}
}

func TestDevEnvNamesAServerThatRuns(t *testing.T) {
	t.Parallel()
	dir, dsn := t.TempDir(), "DATABASE_URL="+dbtest.DSN(t)
	names := func() string {
		env, err := app.ReadDevEnv(dir)
		if err != nil {
			t.Error(err)
		}
		return env.URL
	}
	first, stop, err := serve(t, app.Options{DevDir: dir}, dsn, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = serve(t, app.Options{DevDir: dir}, dsn)
	if e, ok := errors.AsType[*app.StartError](err); !ok || !strings.Contains(e.Why, "runs here already, at "+first) {
		t.Errorf("a second server: %v", err)
	}
	var out strings.Builder
	if _, _, err := serve(t, app.Options{DevDir: dir, Out: &out}, dsn, "PARLEY_LISTEN=127.0.0.1:0"); err != nil || names() != first {
		t.Errorf("one next to it: dev.env names %s, not %s: %v", names(), first, err)
	}
	if !strings.Contains(out.String(), "still names "+first) {
		t.Errorf("the second server does not report that dev.env names the first:\n%s", &out)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	third, _, err := serve(t, app.Options{DevDir: dir}, dsn, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil || names() != third {
		t.Errorf("after the first server stopped: dev.env names %s, not %s: %v", names(), third, err)
	}
}

func TestWorkersAndRequestsCanBeApart(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	opt := app.Options{}
	at, _, err := serve(t, opt, "DATABASE_URL="+dsn, "PARLEY_HTTP=false")
	if err != nil || at != "" {
		t.Fatalf("without HTTP: %q, %v", at, err)
	}
	at, _, err = serve(t, opt, "DATABASE_URL="+dsn, "PARLEY_WORKERS=0", "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(at + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if res.StatusCode != http.StatusOK {
		t.Errorf("readyz: %d", res.StatusCode)
	}
}

func get(t *testing.T, env app.DevEnv, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, env.URL+"/api/v1/workspaces/"+env.Workspace+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+env.APIKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	return res.StatusCode
}
