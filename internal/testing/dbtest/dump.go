//go:build unix

package dbtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Data returns the server's data directory.
func (s *Server) Data() string { return filepath.Join(s.running.Dir, "data") }

// Log returns the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.running.Dir, "postgres.log") }

// Checkpoint makes the server write its buffers to its files.
func (s *Server) Checkpoint() {
	s.t.Helper()
	if err := execute(s.Admin(), "CHECKPOINT"); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
}

// Dump returns the output of pg_dump for a database.
func (s *Server) Dump(dsn string) []byte {
	s.t.Helper()
	return s.run("pg_dump", nil, "--dbname", dsn)
}

// Restore creates a database from the output of Dump and returns its DSN.
func (s *Server) Restore(dump []byte) string {
	s.t.Helper()
	name := newName()
	if err := execute(s.Admin(), "CREATE DATABASE "+name); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	dsn := withDatabase(s.Admin(), name)
	s.run("psql", dump, "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", dsn)
	return dsn
}

// run runs one of PostgreSQL's own programs and returns its output.
func (s *Server) run(program string, input []byte, args ...string) []byte {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program(program), args...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("dbtest: %s: %v: %s", program, err, &errs)
	}
	return out
}

// program returns the path of one of PostgreSQL's own programs, which downloads do not contain.
func (s *Server) program(name string) string {
	s.t.Helper()
	// The first word is the path of the running program.
	options, err := os.ReadFile(filepath.Join(s.Data(), "postmaster.opts"))
	if err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	postgres, _, _ := strings.Cut(string(options), " ")
	path := filepath.Join(filepath.Dir(postgres), name)
	if _, err := os.Stat(path); err != nil {
		unavailable(s.t, err)
	}
	return path
}
