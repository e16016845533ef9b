//go:build unix

package app_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestServeThroughPgBouncer starts on an empty database behind PgBouncer in session mode, which
// rejects every startup parameter that it does not know: migrations, pool and listeners work.
func TestServeThroughPgBouncer(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	server := dbtest.NewServer(t)
	exec(t, server.Admin(), "CREATE DATABASE bounced")
	address := bounce(t, server, "session")
	at, _, err := serve(t, app.Options{}, "DATABASE_URL=postgres://anyone@"+address+"/bounced?sslmode=disable", "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the service is ready", func() bool {
		res, err := http.Get(at + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	http.DefaultClient.CloseIdleConnections()
}

// bounce runs PgBouncer in a mode before a server, as the server's user: PgBouncer refuses to run as
// root, and only that user may use the server's socket.
func bounce(t *testing.T, server *dbtest.Server, mode string) (address string) {
	t.Helper()
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		need.Missing(t, "PgBouncer is not installed")
	}
	config, err := pgx.ParseConfig(server.Admin())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "parley-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	free.Close()
	ini := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\n"+
		"auth_type = any\npool_mode = %s\ndefault_pool_size = 60\nmax_client_conn = 100\nunix_socket_dir =\n",
		config.Host, config.Port, config.User, address[strings.LastIndex(address, ":")+1:], mode)
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(program, "-q", ini)
	out, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	owner, err := os.Stat(server.Data())
	if err != nil {
		t.Fatal(err)
	}
	if uid := owner.Sys().(*syscall.Stat_t).Uid; os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: owner.Sys().(*syscall.Stat_t).Gid}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = wait.Result(t, "the end of PgBouncer", cmd.Wait)
	})
	t.Cleanup(func() {
		if printed, _ := os.ReadFile(out.Name()); t.Failed() {
			t.Logf("PgBouncer printed:\n%s", printed)
		}
	})
	wait.For(t, "PgBouncer listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return address
}
