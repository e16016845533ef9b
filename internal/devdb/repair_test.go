//go:build unix

package devdb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/testing/wait"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestKilledPostmasterIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, newDir(t))
	query(t, s.DSN(""), "CREATE TABLE kept AS SELECT 42 AS n")
	for range 2 {
		first := pid(t, s)
		kill(t, first)
		wait.For(t, "a new postmaster is ready", func() bool {
			at, err := os.ReadFile(filepath.Join(s.Data(), "postmaster.pid"))
			return err == nil && !strings.HasPrefix(string(at), itoa(first)+"\n") && strings.Contains(string(at), "\nready")
		})
		if got := query(t, s.DSN(""), "SELECT n FROM kept"); got != "42" {
			t.Errorf("kept %q", got)
		}
	}
}

// TestEverythingKilled simulates a power cut for processes: the user, the guard and the postmaster
// die at once and leave their files.
func TestEverythingKilled(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	query(t, s.DSN(""), "CREATE TABLE kept AS SELECT 42 AS n")
	first := pid(t, s)
	if err := s.KillGuard(); err != nil {
		t.Fatal(err)
	}
	kill(t, first)
	stop(t, s)
	s = serve(t, dir)
	if got := query(t, s.DSN(""), "SELECT n FROM kept"); s.Joined || got != "42" {
		t.Errorf("joined %v, kept %q", s.Joined, got)
	}
}

func TestKilledGuardIsReplaced(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	query(t, s.DSN(""), "CREATE TABLE kept AS SELECT 42 AS n")
	if err := s.KillGuard(); err != nil {
		t.Fatal(err)
	}
	if err := s.Watch(t.Context()); !errors.Is(err, devdb.ErrEnded) {
		t.Errorf("watch: %v", err)
	}
	if runtime.GOOS == "linux" { // elsewhere it keeps running, and is adopted
		wait.For(t, "PostgreSQL heeds the death of its guard", s.Stopping)
	}
	again := serve(t, dir)
	if got := query(t, again.DSN(""), "SELECT n FROM kept"); got != "42" || !again.Guarded() {
		t.Errorf("kept %q, guarded %v", got, again.Guarded())
	}
}

func TestRunningServerIsAdopted(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	stop(t, s)
	cmd, err := s.Unguarded()
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	wait.For(t, "it has a file", func() bool { _, err := s.PID(); return err == nil })
	again := serve(t, dir)
	if !again.Joined || pid(t, again) != cmd.Process.Pid || query(t, again.DSN(""), "SELECT 1") != "1" {
		t.Errorf("joined %v, process %d, not %d", again.Joined, pid(t, again), cmd.Process.Pid)
	}
	stop(t, again)
	if err := wait.Receive(t, "the end of the process", waited); err != nil {
		t.Errorf("not a clean shutdown: %v", err)
	}
}

// TestForeignProcessInPidfile simulates a reboot: the pid now belongs to another process.
func TestForeignProcessInPidfile(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	stop(t, s)
	foreign, end, err := s.Bystander()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	stale := fmt.Sprintf("%d\n%s\n1700000000\n5432\n%s\n\n 0 0\nready   \n", foreign, s.Data(), dir)
	if err := os.WriteFile(filepath.Join(s.Data(), "postmaster.pid"), []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir)
	if s.Joined || pid(t, s) == foreign || query(t, s.DSN(""), "SELECT 1") != "1" {
		t.Errorf("joined %v, process %d", s.Joined, pid(t, s))
	}
}

func TestOtherMajorVersionIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	stop(t, s)
	version := filepath.Join(s.Data(), "PG_VERSION")
	was, err := os.ReadFile(version)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(version, []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = devdb.Start(t.Context(), devdb.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") || !strings.Contains(err.Error(), s.Version) {
		t.Errorf("error: %v", err)
	}
	if err := os.WriteFile(version, was, 0o600); err != nil {
		t.Fatal(err)
	}
	if s = serve(t, dir); query(t, s.DSN(""), "SELECT 1") != "1" {
		t.Error("damaged")
	}
}

func TestCrashWhileMakingLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s := serve(t, dir); s.Dir != dir || query(t, s.DSN(""), "SELECT 1") != "1" {
		t.Errorf("no server in %s", dir)
	}
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	available(t)
	dir := newDir(t)
	mine := filepath.Join(dir, "data", "thesis.txt")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("the only copy"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := devdb.Start(t.Context(), devdb.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(),
		"not a PostgreSQL data directory") {
		t.Errorf("error: %v", err)
	}
	if text, err := os.ReadFile(mine); string(text) != "the only copy" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhyPostgresDidNotStart(t *testing.T) {
	t.Parallel()
	available(t)
	_, err := devdb.Start(t.Context(), devdb.Options{
		Dir: newDir(t), Disposable: true, Settings: map[string]string{"shared_buffers": "a lot"},
	})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) || !strings.Contains(err.Error(),
		"postgres.log") {
		t.Errorf("error: %v", err)
	}
}
