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
	cmd := exec.CommandContext(s.t.Context(), s.program("pg_dump"), "--dbname", dsn)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("dbtest: pg_dump: %v: %s", err, &errs)
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
