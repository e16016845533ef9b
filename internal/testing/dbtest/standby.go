//go:build unix

package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// FollowPrimary replaces the server's data by a copy of the primary's and makes it the primary's
// synchronous standby: from then on every commit of the primary waits for this server.
func (s *Server) FollowPrimary(primary *Server) {
	s.t.Helper()
	s.Stop()
	copied := s.Data() + ".copy"
	run := func(name string, args ...string) error {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	}
	s.retry("follow", func(context.Context) error { // the primary may recover from a crash
		return errors.Join(os.RemoveAll(copied),
			run(primary.program("pg_basebackup"), "--dbname", primary.Admin(), "--pgdata", copied, "--write-recovery-conf", "--checkpoint",
				"fast", "--no-sync"))
	})
	if err := run("chown", "-R", "--reference", s.Data(), copied); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	if err := os.RemoveAll(s.Data()); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	if err := os.Rename(copied, s.Data()); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	s.Start()
	primary.setSynchronous("*")
	primary.await("a synchronous standby", `SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`)
}

// Promote makes a standby the primary, if need be after its recovery from a crash. Its commits wait for
// no other server.
func (s *Server) Promote() {
	s.t.Helper()
	s.retry("promote", func(context.Context) error { return execute(s.Admin(), "SELECT pg_promote(true, 60)") })
	s.setSynchronous("")
}

// AwaitDatabase waits until a standby has a database of its primary.
func (s *Server) AwaitDatabase(name string) {
	s.t.Helper()
	s.await("the database "+name, "SELECT count(*) = 1 FROM pg_database WHERE datname = '"+name+"'")
}

func (s *Server) setSynchronous(names string) {
	s.t.Helper()
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
		if err := execute(s.Admin(), sql); err != nil {
			s.t.Fatalf("dbtest: %v", err)
		}
	}
}

// await polls a query until it is true.
func (s *Server) await(what, sql string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Admin())
	if err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	defer conn.Close(ctx)
	for holds := false; ; {
		if err := conn.QueryRow(ctx, sql).Scan(&holds); err != nil {
			s.t.Fatalf("dbtest: wait for %s: %v", what, err)
		}
		if holds {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// PrimaryOf returns a DSN that leads to the primary of several servers with the same database.
func PrimaryOf(dsns ...string) string {
	var hosts, ports []string
	for _, dsn := range dsns {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			panic(err)
		}
		hosts, ports = append(hosts, config.Host), append(ports, fmt.Sprint(config.Port))
	}
	u, err := url.Parse(dsns[0])
	if err != nil {
		panic(err)
	}
	query := u.Query()
	query.Set("host", strings.Join(hosts, ","))
	query.Set("port", strings.Join(ports, ","))
	query.Set("target_session_attrs", "read-write")
	u.Host, u.RawQuery = "", query.Encode()
	return u.String()
}
