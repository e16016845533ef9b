//go:build unix

package app_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// examine returns the findings of Doctor with some settings. The sandbox has tests of its own.
func examine(t *testing.T, environ ...string) map[string]app.Finding {
	t.Helper()
	cfg, err := app.Load(app.Sources{Environ: append([]string{"PARLEY_VAULT_KEY=" + vaultKey, "PARLEY_SANDBOX=off"}, environ...)})
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]app.Finding)
	for f := range app.Doctor(t.Context(), cfg, app.DoctorOptions{DevDir: filepath.Join(t.TempDir(), "none")}) {
		found[f.Check] = f
	}
	return found
}

// expectFinding checks one finding: its grade, and a part of its result or remedy.
func expectFinding(t *testing.T, f app.Finding, grade app.Grade, part string) {
	t.Helper()
	if f.Grade != grade || !strings.Contains(f.Result+"\n"+f.Remedy, part) {
		t.Errorf("%s is %s, want %s: %q, remedy %q, want %q", f.Check, f.Grade, grade, f.Result, f.Remedy, part)
	}
	if f.Grade == app.GradeFail && f.Remedy == "" {
		t.Errorf("%s has no remedy: %q", f.Check, f.Result)
	}
}

// TestDoctorFindsNothingWrong examines a good set-up, of which only the durability of the test
// database and the model are not those of a real one.
func TestDoctorFindsNothingWrong(t *testing.T) {
	t.Parallel()
	slow.Test(t, "uses databases")
	provider := modeltest.OpenAI(modeltest.Say("OK"))
	t.Cleanup(provider.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(vaultKey), 0o600); err != nil {
		t.Fatal(err)
	}
	heads := filepath.Join(t.TempDir(), "heads.jsonl")
	found := examine(t, "PARLEY_AUDIT_HEADS="+heads, "DATABASE_URL="+dbtest.DSN(t), "OPENAI_BASE_URL="+provider.URL+"/v1",
		"PARLEY_BASE_URL=https://parley.example",
		"PARLEY_VAULT_KEY=", "PARLEY_VAULT_KEY_FILE="+key)
	for _, name := range []string{"settings", "database", "pooler", "listen", "migrations", "vault", "clock", "disk", "heads",
		"sandbox", "model"} {
		expectFinding(t, found[name], app.GradeOK, "")
	}
	expectFinding(t, found["model"], app.GradeOK, "openai/gpt-5-mini answers")
	expectFinding(t, found["pooler"], app.GradeOK, "PostgreSQL itself")
	expectFinding(t, found["heads"], app.GradeOK, heads+" can be created.")
}

// TestDoctorFindsEachFault breaks one thing at a time.
func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	slow.Test(t, "uses databases")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	good, present := dbtest.DSN(t), filepath.Join(t.TempDir(), "heads.jsonl")
	withoutRights := func(t *testing.T) []string {
		dsn := dbtest.DSN(t)
		role := "stranger_" + strings.ToLower(strings.TrimPrefix(mustParse(t, dsn).Path, "/"))
		exec(t, dsn, "CREATE ROLE "+role+" LOGIN")
		t.Cleanup(func() { exec(t, good, "DROP ROLE "+role) })
		u := mustParse(t, dsn)
		u.User = url.User(role)
		q := u.Query()
		q.Del("user")
		u.RawQuery = q.Encode()
		return []string{"DATABASE_URL=" + u.String()}
	}
	for _, c := range []struct {
		name, check string
		grade       app.Grade
		part        string
		environ     func(t *testing.T) []string
	}{
		{"no address", "database", app.GradeFail, "DATABASE_URL is not set", func(*testing.T) []string { return nil }},
		{"no server", "database", app.GradeFail, "Start PostgreSQL", func(*testing.T) []string {
			return []string{"DATABASE_URL=postgres://127.0.0.1:1/none"}
		}},
		{"a silent server", "database", app.GradeFail, "cannot be reached: no answer in time.\nStart", func(*testing.T) []string {
			return []string{"DATABASE_URL=postgres://" + silent.Addr().String() + "/none"}
		}},
		{"no such database", "database", app.GradeFail, "does not exist", func(t *testing.T) []string {
			u, _ := url.Parse(good)
			u.Path = "/nowhere"
			return []string{"DATABASE_URL=" + u.String()}
		}},
		{"what needs it is skipped", "migrations", app.GradeSkip, "not reachable", func(*testing.T) []string { return nil }},
		{"a role without rights", "rights", app.GradeFail, "grant it SELECT", withoutRights},
		{"migrations without rights", "migrations", app.GradeFail, "parley migrate grant ROLE", withoutRights},
		{"keys without rights", "vault", app.GradeFail, "parley migrate grant ROLE", withoutRights},
		{"no such host", "database", app.GradeFail, "no such host.\nStart PostgreSQL", func(*testing.T) []string {
			return []string{"DATABASE_URL=postgres://no-such-host.invalid/none"}
		}},
		{"a standby", "database", app.GradeFail, "nothing can be written there", func(t *testing.T) []string {
			dsn := dbtest.DSN(t)
			exec(t, dsn, "ALTER DATABASE "+strings.TrimPrefix(mustParse(t, dsn).Path, "/")+" SET default_transaction_read_only = on")
			return []string{"DATABASE_URL=" + dsn}
		}},
		{"no standby", "durability", app.GradeFail, "waited 3s for its synchronous standbys", func(t *testing.T) []string {
			server := dbtest.NewServer(t)
			dsn := server.DSN()
			exec(t, server.Admin(), "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
			exec(t, server.Admin(), "SELECT pg_reload_conf()")
			return []string{"DATABASE_URL=" + dsn}
		}},
		{"a database that forgets", "durability", app.GradeFail, "synchronous_commit=off", func(t *testing.T) []string {
			dsn := dbtest.DSN(t)
			exec(t, dsn, "ALTER DATABASE "+strings.TrimPrefix(mustParse(t, dsn).Path, "/")+" SET synchronous_commit = off")
			return []string{"DATABASE_URL=" + dsn}
		}},
		{"an encoding that lacks characters", "database", app.GradeFail, "is SQL_ASCII, not UTF8", func(t *testing.T) []string {
			return []string{"DATABASE_URL=" + encoded(t, good, "SQL_ASCII")}
		}},
		{"an encoding with conversions", "database", app.GradeFail, "is LATIN1, not UTF8", func(t *testing.T) []string {
			return []string{"DATABASE_URL=" + encoded(t, good, "LATIN1")}
		}},
		{"no notifications", "listen", app.GradeFail, "session mode", func(t *testing.T) []string {
			return []string{"DATABASE_URL=" + deaf(t, good)}
		}},
		{"no migrations", "migrations", app.GradeFail, "parley migrate up", func(t *testing.T) []string {
			return []string{"DATABASE_URL=" + dbtest.Empty(t), "PARLEY_MIGRATE=check"}
		}},
		{"migrations to come", "migrations", app.GradeWarn, "applies them", func(t *testing.T) []string {
			return []string{"DATABASE_URL=" + dbtest.Empty(t)}
		}},
		{"another master key", "vault", app.GradeFail, "do not fit", func(t *testing.T) []string {
			dsn := dbtest.DSN(t)
			keys, err := vault.ParseKeys(vault.GenerateKey())
			if err == nil {
				err = vault.New(dbtest.Pool(t, dsn), keys).Prepare(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return []string{"DATABASE_URL=" + dsn}
		}},
		{"no master key", "vault", app.GradeFail, "parley vault key", func(*testing.T) []string {
			return []string{"DATABASE_URL=" + good, "PARLEY_VAULT_KEY="}
		}},
		{"a key in the environment", "vault", app.GradeWarn, "PARLEY_VAULT_KEY_FILE", func(*testing.T) []string {
			return []string{"DATABASE_URL=" + good}
		}},
		{"no directory", "disk", app.GradeFail, "PARLEY_RUNNER_DIR", func(*testing.T) []string {
			return []string{"PARLEY_RUNNER_DIR=/nonexistent"}
		}},
		{"no place for heads", "heads", app.GradeWarn, "can rewrite the log", func(*testing.T) []string { return nil }},
		{"no directory for heads", "heads", app.GradeFail, "/nonexistent/heads.jsonl failed: the directory /nonexistent does not exist.\n" +
			present + " can be created.", func(*testing.T) []string {
			return []string{"PARLEY_AUDIT_HEADS=" + present + ",/nonexistent/heads.jsonl"}
		}},
		{"a silent place for heads", "heads", app.GradeFail, "http://" + silent.Addr().String() + " failed: No answer in time.",
			func(*testing.T) []string {
				return []string{"PARLEY_AUDIT_HEADS=http://" + silent.Addr().String() + "/hush"}
			}},
		{"no provider", "model", app.GradeWarn, "PARLEY_MODEL", func(*testing.T) []string { return nil }},
		{"a provider that is down", "model", app.GradeFail, "openai/gpt-5-mini", func(*testing.T) []string {
			return []string{"OPENAI_BASE_URL=" + closed.URL + "/v1"}
		}},
		{"no public address", "settings", app.GradeWarn, "PARLEY_BASE_URL", func(*testing.T) []string {
			return []string{"DATABASE_URL=" + good}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectFinding(t, examine(t, c.environ(t)...)[c.check], c.grade, c.part)
		})
	}
}

// encoded creates a database with the encoding and returns its DSN.
func encoded(t *testing.T, server, encoding string) string {
	t.Helper()
	name := "encoded_" + strings.ToLower(rand.Text()[:10])
	exec(t, server, "CREATE DATABASE "+name+" ENCODING "+encoding+" LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { exec(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u := mustParse(t, server)
	u.Path = "/" + name
	return u.String()
}

func mustParse(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestDoctorKnowsTheModeOfAPooler examines a database behind PgBouncer in each of its modes.
func TestDoctorKnowsTheModeOfAPooler(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	server := dbtest.NewServer(t)
	exec(t, server.Admin(), "CREATE DATABASE bounced")
	for mode, grade := range map[string]app.Grade{"session": app.GradeOK, "transaction": app.GradeFail, "statement": app.GradeFail} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			found := examine(t, "DATABASE_URL=postgres://anyone@"+bounce(t, server, mode)+"/bounced?sslmode=disable")
			expectFinding(t, found["pooler"], grade, "A pooler in "+mode+" mode")
			if grade == app.GradeOK {
				expectFinding(t, found["listen"], grade, "")
				return
			}
			expectFinding(t, found["pooler"], grade, "dbname=bounced pool_mode=session")
			expectFinding(t, found["listen"], app.GradeSkip, mode+" mode")
		})
	}
}

func TestDoctorJudgesFigures(t *testing.T) {
	t.Parallel()
	expectFinding(t, app.VersionFinding(140011, "PostgreSQL 14.11"), app.GradeWarn, "Upgrade PostgreSQL")
	expectFinding(t, app.VersionFinding(150002, "PostgreSQL 15.2"), app.GradeOK, "")
	expectFinding(t, app.SkewFinding(-3*time.Second, time.Millisecond), app.GradeFail, "differ by 3s")
	expectFinding(t, app.SkewFinding(time.Second, time.Millisecond), app.GradeOK, "")
	expectFinding(t, app.DiskFinding("/x", 100<<20), app.GradeFail, "0.1 GiB")
	expectFinding(t, app.DiskFinding("/x", 1<<30), app.GradeWarn, "Free some space")
	expectFinding(t, app.DiskFinding("/x", 3<<30), app.GradeOK, "")
}

// TestDoctorChecksEnd runs a check that does not obey its context.
func TestDoctorChecksEnd(t *testing.T) {
	t.Parallel()
	release, ended := make(chan struct{}), make(chan struct{})
	f := app.PerformCheck(t.Context(), time.Millisecond, func(context.Context) error { defer close(ended); <-release; return nil })
	if f.Grade != app.GradeFail || !strings.Contains(f.Result, "No result") {
		t.Errorf("%+v", f)
	}
	close(release)
	wait.Receive(t, "the end of the check", ended)
}

// examineURLs returns the findings for addresses.
func examineURLs(t *testing.T, urls ...string) (found []app.Finding) {
	t.Helper()
	for f := range app.CheckAddresses(t.Context(), urls) {
		found = append(found, f)
	}
	return found
}

// TestDoctorFindsTheBufferingProxy examines a server through nginx, which passes streams as the
// server requests it, and through nginx that buffers or compresses them.
func TestDoctorFindsTheBufferingProxy(t *testing.T) {
	t.Parallel()
	at, _, err := serve(t, app.Options{}, "DATABASE_URL="+dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, examineURLs(t, at+"/")[0], app.GradeOK, "streams arrive as they are sent")

	passing := nginx(t, at, "proxy_http_version 1.1;")
	expectFinding(t, examineURLs(t, passing)[0], app.GradeOK, "nginx")
	for name, settings := range map[string]string{
		"buffers": "proxy_ignore_headers X-Accel-Buffering; proxy_buffering on;",
		"compresses": "proxy_ignore_headers X-Accel-Buffering; proxy_buffering on; gzip on; gzip_proxied any; " +
			"gzip_types text/event-stream; gzip_http_version 1.0; gzip_min_length 1;",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := examineURLs(t, nginx(t, passing, settings), passing, at)
			expectFinding(t, found[0], app.GradeFail, "proxy_buffering off")
			expectFinding(t, found[1], app.GradeOK, "The cause is between")
			expectFinding(t, found[2], app.GradeOK, "")
			if name == "compresses" {
				expectFinding(t, found[0], app.GradeFail, "Content-Encoding gzip")
			}
		})
	}
}

func TestDoctorFindsAWrongAddress(t *testing.T) {
	t.Parallel()
	redirecting := httptest.NewServer(http.RedirectHandler("https://parley.example/", http.StatusMovedPermanently))
	t.Cleanup(redirecting.Close)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	breaking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"status":"ok"}`) // no stream follows
	}))
	t.Cleanup(breaking.Close)
	stopping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, `{"error":{"message":"The service is not ready: it is stopping."}}`)
	}))
	t.Cleanup(stopping.Close)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = nil
	for address, part := range map[string]string{
		"http://127.0.0.1:1": "Check the name", redirecting.URL: "redirects to https://parley.example/", other.URL: "There is no Parley",
		breaking.URL: "breaks after 0 frames", stopping.URL: "it is stopping", secure.URL: "certificate",
	} {
		expectFinding(t, examineURLs(t, address)[0], app.GradeFail, part)
	}
}

// nginx runs nginx in front of a server.
func nginx(t *testing.T, upstream, settings string) (address string) {
	t.Helper()
	program, err := osexec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	if _, err := os.Stat(program); err != nil {
		need.Missing(t, "nginx is not installed")
	}
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	free.Close()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	config := fmt.Sprintf(`%sdaemon off; master_process off; pid %[2]s/pid; error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi; uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
	server { listen %[3]s; location / { proxy_pass %[4]s; %[5]s } }
}
`, user, dir, address, upstream, settings)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(program, "-e", "stderr", "-p", dir, "-c", file)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = wait.Result(t, "the end of nginx", cmd.Wait)
	})
	wait.For(t, "nginx listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return "http://" + address
}
