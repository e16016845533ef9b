//go:build unix

package devdb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestDataOutlivesTheServer(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	s, err := devdb.Start(t.Context(), devdb.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if s.Joined || !strings.HasPrefix(query(t, s.DSN(""), "SHOW server_version"), s.Version) {
		t.Errorf("joined %v, version %s", s.Joined, s.Version)
	}
	for _, setting := range []struct{ name, want string }{
		{"fsync", "on"}, {"synchronous_commit", "on"}, {"full_page_writes", "on"},
		{"listen_addresses", ""}, {"server_encoding", "UTF8"}, {"TimeZone", "UTC"},
	} {
		if got := query(t, s.DSN(""), "SHOW "+setting.name); got != setting.want {
			t.Errorf("%s = %q", setting.name, got)
		}
	}
	query(t, s.DSN(""), "CREATE TABLE kept AS SELECT 42 AS n")
	first := pid(t, s)
	stop(t, s)
	if devdb.Alive(first) || s.Guarded() {
		t.Errorf("Stop left PostgreSQL (%v) or its guard (%v) behind", devdb.Alive(first), s.Guarded())
	}

	s = serve(t, dir)
	if got := query(t, s.DSN(""), "SELECT n FROM kept"); got != "42" {
		t.Errorf("kept %q", got)
	}
	if got := query(t, s.DSN(""), "SHOW fsync"); got != "off" {
		t.Errorf("fsync = %q when disposable", got)
	}
}

func TestOneOfManyProcessesStarts(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	users := make([]*other, 4)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() { users[i] = user(t, dir, nil) })
	}
	wait.Until(t, "all goroutines", wg.Wait)
	started := 0
	for _, u := range users {
		if u.Error != "" || u.PID != users[0].PID || u.PID == 0 || u.Version != users[0].Version {
			t.Errorf("%+v, and another %+v", u.report, users[0].report)
		}
		if !u.Joined {
			started++
		}
	}
	if started != 1 {
		t.Errorf("%d processes started a server", started)
	}
	for _, u := range users {
		u.end()
	}
	wait.For(t, "the last one out ends PostgreSQL", func() bool { return !devdb.Alive(users[0].PID) })
}

// TestJoinerKeepsTheServer shows why a guard runs between PostgreSQL and the process that starts
// it.
func TestJoinerKeepsTheServer(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	first := user(t, dir, nil)
	s := serve(t, dir)
	if !s.Joined || pid(t, s) != first.PID {
		t.Fatalf("joined %v, process %d; %+v", s.Joined, pid(t, s), first.report)
	}
	conn, err := pgx.Connect(t.Context(), s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	first.kill(t)
	third := user(t, dir, nil)
	if !third.Joined || third.PID != first.PID || ask(t, conn, "SELECT 1") != "1" {
		t.Errorf("after kill -9 of the first user: %+v", third.report)
	}
	third.end()
	if ask(t, conn, "SELECT 1") != "1" {
		t.Error("the connection was closed")
	}
}

func TestKilledUserTakesPostgresAlong(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	only := user(t, dir, nil)
	query(t, only.DSN, "CREATE TABLE kept AS SELECT 42 AS n")
	only.kill(t)
	wait.For(t, "PostgreSQL ends", func() bool { return !devdb.Alive(only.PID) })
	s := serve(t, dir)
	if got := query(t, s.DSN(""), "SELECT n FROM kept"); s.Joined || got != "42" {
		t.Errorf("joined %v, kept %q", s.Joined, got)
	}
}

// TestCtrlCIsNotForPostgres sends SIGINT to the process group, as a terminal does.
func TestCtrlCIsNotForPostgres(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	u := user(t, dir, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(cmd.Env, "OPENAI_API_KEY=sk-do-not-inherit", "PGDATA=/nowhere", "PGPORT=1")
	})
	s := serve(t, dir)
	if err := syscall.Kill(-u.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	u.end()
	if query(t, s.DSN(""), "SELECT 1") != "1" || pid(t, s) != u.PID {
		t.Error("PostgreSQL received the signal as well")
	}
	if environ, err := os.ReadFile(filepath.Join("/proc", itoa(u.PID), "environ")); err == nil && strings.Contains(string(environ),
		"sk-do-not") {
		t.Error("PostgreSQL has our API keys in its environment")
	}
}

func TestLongPathHasAShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), strings.Repeat("long name, ", 12))
	s := serve(t, dir)
	if s.Dir != dir {
		t.Errorf("data in %s", s.Dir)
	}
	sockets := query(t, s.DSN(""), "SHOW unix_socket_directories")
	t.Cleanup(func() { os.RemoveAll(sockets) })
	if len(sockets)+len("/.s.PGSQL.5432") > devdb.MaxSocket {
		t.Errorf("socket in %s", sockets)
	}
	info, err := os.Stat(sockets)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestRemoveRefusesWhileInUse(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	if err := devdb.Remove(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("in use: %v", err)
	}
	if query(t, s.DSN(""), "SELECT 1") != "1" {
		t.Error("damaged")
	}
	stop(t, s)
	if err := devdb.Remove(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("still there")
	}
}

// TestForgottenServerStays drops the only reference to a server.
func TestForgottenServerStays(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	if _, err := devdb.Start(t.Context(), devdb.Options{Dir: dir, Disposable: true}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		collected := make(chan struct{})
		runtime.AddCleanup(new(*int), func(c chan struct{}) { close(c) }, collected)
		runtime.GC()
		wait.Receive(t, "the collection", collected)
	}
	if !devdb.InUse(dir) {
		t.Error("the garbage collector released the process's share")
	}
	if s := serve(t, dir); !s.Joined {
		t.Error("the server had ended")
	}
	t.Cleanup(func() { devdb.StopForgotten(dir) })
}
