//go:build unix

package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/devdb"
)

// Server is one test's own PostgreSQL, which it can kill, stop and restart. Use New if a database
// is sufficient: this takes a second and 40 MB.
type Server struct {
	t       testing.TB
	options devdb.Options
	running *devdb.Server
}

// NewServer starts a private server that ends with the test. Settings are PostgreSQL's, as
// "name=value".
func NewServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return NewServerAt(t, "", "", settings...)
}

// NewServerAt is NewServer with its data below a directory and its programs in another one; "" means
// the usual place.
func NewServerAt(t testing.TB, below, programs string, settings ...string) *Server {
	t.Helper()
	// Not t.TempDir: the user that runs PostgreSQL cannot enter root's.
	dir, err := os.MkdirTemp(below, "parley-pg-")
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	s := &Server{t: t, options: devdb.Options{Dir: filepath.Join(dir, "pg"), Bin: programs, Disposable: true, Settings: map[string]string{}}}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		s.options.Settings[name] = value
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// DSN creates a database with the schema and returns its DSN, which stays valid when the server is
// restarted.
func (s *Server) DSN() string {
	s.t.Helper()
	admin := s.Admin()
	template, err := templateOn(context.Background(), admin)
	if err != nil {
		s.t.Fatalf("dbtest: make the template: %v", err)
	}
	name := newName()
	if err := execute(admin, "CREATE DATABASE "+name+" "+template); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	return s.running.DSN(name)
}

// Empty creates a database without tables and returns its DSN.
func (s *Server) Empty() string {
	s.t.Helper()
	name := newName()
	if err := execute(s.Admin(), "CREATE DATABASE "+name); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	return s.running.DSN(name)
}

// Database returns the DSN of a database of this server.
func (s *Server) Database(name string) string { return s.running.DSN(name) }

// Admin returns the DSN of the default database.
func (s *Server) Admin() string { return s.running.DSN("") }

// Stop shuts PostgreSQL down as an administrator does.
func (s *Server) Stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.running.Stop(ctx); err != nil {
		s.t.Errorf("dbtest: %v", err)
	}
}

// Processes returns the process ids of PostgreSQL, the postmaster's first; none if it does not run.
func (s *Server) Processes() []int {
	postmaster, err := s.running.PID()
	if err != nil || syscall.Kill(postmaster, 0) != nil { // a crash leaves the file
		return nil
	}
	all := []int{postmaster}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", postmaster))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// Crash stops PostgreSQL at once, like pg_ctl stop -m immediate: it writes nothing more, and
// connections break. Start restarts it. PostgreSQL may have stopped by itself before, and its guard
// may be about to restart it.
func (s *Server) Crash() {
	s.t.Helper()
	began := time.Now()
	quit := func() {
		if pid, err := s.running.PID(); err == nil {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		}
		if time.Since(began) > 10*time.Second { // a handler of the signal may be blocked, for example in libfaketime
			for _, pid := range s.Processes() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	quit()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Stop()
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-tick.C: // the guard may have restarted it meanwhile
			quit()
		}
	}
}

// Start starts or restarts PostgreSQL.
func (s *Server) Start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running, err := devdb.Start(ctx, s.options)
	if err != nil {
		unavailable(s.t, err)
	}
	s.running = running
}

// Kill sends SIGKILL to the postmaster. It returns when PostgreSQL runs again.
func (s *Server) Kill() {
	s.t.Helper()
	killed := s.Signal(syscall.SIGKILL)
	s.retry("restart", func(ctx context.Context) error {
		pid, err := s.running.PID()
		if err == nil && pid == killed {
			err = errors.New("its process is not replaced")
		}
		if err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, s.Admin())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// retry calls f until it succeeds. what names the action that failed.
func (s *Server) retry(what string, f func(ctx context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("dbtest: PostgreSQL did not %s: %v", what, err)
		}
	}
}

// Signal sends a signal to the postmaster and returns its process id.
func (s *Server) Signal(sig syscall.Signal) int {
	s.t.Helper()
	pid, err := s.running.PID()
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	return pid
}
