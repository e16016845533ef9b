//go:build unix

package canary

import (
	"path/filepath"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

// Settings returns the settings with which a server logs everything that it receives, for
// dbtest.NewServer.
func Settings() []string {
	return []string{"log_statement=all", "log_min_duration_statement=0", "log_parameter_max_length=-1", "log_parameter_max_length_on_error=-1"}
}

// Server returns everything that a PostgreSQL server stores of a database: its dump, its files, the
// write-ahead log and the server's log. It flushes buffers first.
func Server(s *dbtest.Server, dsn string) []Source {
	written := func(src Source) Source {
		each := src.Each
		src.Each = func(search func(string, []byte)) error {
			s.Checkpoint()
			return each(search)
		}
		return src
	}
	return []Source{
		{"dump", func(search func(string, []byte)) error {
			search("pg_dump", s.Dump(dsn))
			return nil
		}},
		written(Files("data files", s.Data(), "pg_wal")),
		written(Files("write-ahead log", filepath.Join(s.Data(), "pg_wal"))),
		Files("server log", s.Log()),
	}
}
