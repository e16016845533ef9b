//go:build unix

package devdb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/wait"
)

const nobody = 65534

func asRoot(t *testing.T) {
	t.Helper()
	available(t)
	need.Root(t)
}

func TestRootHandsDownToAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	s := serve(t, newDir(t))
	data := s.Data()
	if owner := devdb.OwnerOf(data); owner == 0 {
		t.Error("the data belongs to root")
	}
	if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if status, err := os.ReadFile("/proc/" + itoa(pid(t, s)) + "/status"); err == nil && strings.Contains(string(status), "Uid:\t0") {
		t.Error("PostgreSQL runs as root")
	}
}

// TestClosedHomeSendsDataElsewhere checks a checkout below /root.
func TestClosedHomeSendsDataElsewhere(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := filepath.Join(filepath.Dir(newDir(t)), "closed", "pg")
	if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	u := user(t, dir, nil)
	if u.Error != "" || !strings.HasPrefix(u.Dir, "/var/tmp/parley-0-") || !strings.Contains(strings.Join(u.Progress, "\n"), u.Dir) {
		t.Errorf("%+v", u.report)
	}
	again := user(t, dir, nil)
	if !again.Joined || again.Dir != u.Dir {
		t.Errorf("%+v", again.report)
	}
	u.end()
	again.end()
	if err := devdb.Remove(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(u.Dir); err == nil {
		t.Errorf("%s is still there", u.Dir)
	}
}

// ordinary runs a helper as an unprivileged user.
func ordinary(home string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CACHE_HOME=")
	}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := newDir(t)
	home := filepath.Dir(dir)
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	u := user(t, dir, ordinary(home))
	if u.Error != "" || u.Dir != dir || query(t, u.DSN, "SELECT 1") != "1" {
		t.Fatalf("%+v", u.report)
	}
	u.kill(t)
	wait.For(t, "PostgreSQL ends", func() bool { return !devdb.Alive(u.PID) })

	// A server started by root uses the same directory, and leaves it usable.
	s := serve(t, dir)
	if owner := devdb.OwnerOf(s.Data()); owner != nobody {
		t.Errorf("the data belongs to %d now", owner)
	}
	stop(t, s)
	if u = user(t, dir, ordinary(home)); u.Error != "" {
		t.Errorf("after root: %s", u.Error)
	}
}

func TestDataOfAnotherUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := newDir(t)
	stop(t, serve(t, dir))
	if owner := devdb.OwnerOf(filepath.Join(dir, "data")); owner == nobody {
		need.Missing(t, "the user postgres does not exist")
	}
	if u := user(t, dir, ordinary("/")); !strings.Contains(u.Error, "belongs to the user ") {
		t.Errorf("%+v", u.report)
	}
}
