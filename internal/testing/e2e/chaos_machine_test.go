package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

var chaosOld = flag.String("chaos.old", "", "program of an older release, which rolling deploys start in turn")

// chaosMachine is the part of a machine that faults change: the file system of PostgreSQL's data, its
// clock, and its processes. A fault that the test may not or cannot cause does nothing.
type chaosMachine struct {
	disk    string // a small file system, or "" for the usual one
	clock   string // a file with the shift of PostgreSQL's clock, or ""
	stopped []int  // processes of PostgreSQL that are stopped
}

// diskSize is the size of the small file system: enough for the runs and a standby.
const diskSize = "2g"

// newChaosMachine prepares a file system and a clock of its own for PostgreSQL, as far as root and
// libfaketime are available.
func newChaosMachine(t testing.TB) *chaosMachine {
	t.Helper()
	m := &chaosMachine{}
	if os.Getuid() != 0 {
		return m
	}
	dir, err := os.MkdirTemp("", "parley-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+diskSize+",mode=0755"); err != nil {
		_ = os.Remove(dir)
		return m
	}
	t.Cleanup(func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		_ = os.Remove(dir)
		_ = os.Remove(m.clock)
	})
	m.disk = dir
	return m
}

// newServer starts a PostgreSQL on the machine.
func (m *chaosMachine) newServer(t testing.TB) *dbtest.Server {
	t.Helper()
	return dbtest.NewServerAt(t, m.disk, m.programs(t), "max_connections=100")
}

// programs returns a directory with PostgreSQL's programs that runs postgres with the shifted clock,
// or "" if libfaketime is not installed.
func (m *chaosMachine) programs(t testing.TB) string {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	postgres, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if m.disk == "" || len(libraries) == 0 || len(postgres) == 0 {
		return ""
	}
	bin := filepath.Join(m.disk, "bin")
	m.clock = m.disk + ".clock" // the disk may be full
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	real := postgres[len(postgres)-1]
	programs, err := filepath.Glob(filepath.Join(filepath.Dir(real), "*"))
	if err != nil || os.Mkdir(bin, 0o755) != nil {
		t.Fatal("make ", bin)
	}
	for _, program := range programs {
		if program != real {
			if err := os.Symlink(program, filepath.Join(bin, filepath.Base(program))); err != nil {
				t.Fatal(err)
			}
		}
	}
	script := fmt.Sprintf(
		"#!/bin/sh\nexec env LD_PRELOAD=%s FAKETIME_TIMESTAMP_FILE=%s FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 %s \"$@\"\n",
		libraries[0], m.clock, real)
	err = errors.Join(os.WriteFile(filepath.Join(bin, "postgres"), []byte(script), 0o755), m.shift(0))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// shift sets how far PostgreSQL's clock is ahead of the machine's.
func (m *chaosMachine) shift(by time.Duration) error {
	if m.clock == "" {
		return nil
	}
	next := m.clock + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d", int(by.Seconds())), 0o644); err != nil {
		return err
	}
	return os.Rename(next, m.clock)
}

// fill uses the rest of the small file system up.
func (m *chaosMachine) fill() {
	if m.disk == "" {
		return
	}
	f, err := os.Create(filepath.Join(m.disk, "filler"))
	if err != nil {
		return
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(block)
	}
}

// free undoes fill.
func (m *chaosMachine) free() {
	if m.disk != "" {
		_ = os.Remove(filepath.Join(m.disk, "filler"))
	}
}

// stop stops every process of a PostgreSQL.
func (m *chaosMachine) stop(s *dbtest.Server) {
	m.resume()
	m.stopped = s.Processes()
	for _, pid := range m.stopped {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
}

// resume undoes stop.
func (m *chaosMachine) resume() {
	for _, pid := range m.stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	m.stopped = nil
}

// deploy returns the program that a rolling deploy starts next: this release's and the older one in
// turn.
func (r *replica) deploy() {
	r.mu.Lock()
	r.old = !r.old && *chaosOld != ""
	r.mu.Unlock()
	r.send(syscall.SIGTERM)
}

// command returns the command of the replica's next process.
func (r *replica) command() *exec.Cmd {
	program, env := binary, append(r.env, "PARLEY_DRAIN=2s")
	if r.old {
		program, env = *chaosOld, slices.DeleteFunc(slices.Clone(r.env), func(e string) bool { return e == "PARLEY_E2E=1" })
	}
	cmd := exec.Command(program, "serve", "--listen", r.addr)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(env, r.once...), r.log, r.log
	return cmd
}
