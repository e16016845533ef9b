//go:build unix

package eventlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestNothingIsReadBeforeTheStandbyHasIt: a crash of PostgreSQL makes a row visible whose commit
// waited for a standby that was down. A pool reads it once the standby has it.
func TestNothingIsReadBeforeTheStandbyHasIt(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(primary *dbtest.Server, backend int) error{
		"whole server": func(primary *dbtest.Server, _ int) error {
			primary.Crash()
			primary.Start()
			return nil
		},
		"one backend": func(_ *dbtest.Server, backend int) error { return syscall.Kill(backend, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, standby := dbtest.NewServer(t), dbtest.NewServer(t)
			standby.FollowPrimary(primary)
			dsn := primary.Empty()
			watch := func(sql string) (pid int) {
				conn, err := pgx.Connect(t.Context(), primary.Admin())
				if err != nil { // it may be restarting
					return 0
				}
				defer conn.Close(context.WithoutCancel(t.Context()))
				_ = conn.QueryRow(t.Context(), sql).Scan(&pid) // none: 0
				return pid
			}
			const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname <> 'postgres'`
			const database = `SELECT 1 FROM pg_stat_activity WHERE datname <> 'postgres'`

			read := openChecked(t, dsn, eventlog.CheckStandbys(slog.New(slog.DiscardHandler)))
			if _, err := read.Exec(t.Context(), `CREATE TABLE seen (n int)`); err != nil {
				t.Fatal(err)
			}
			standby.Stop()
			write, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			wrote := make(chan error, 1)
			go func() {
				_, err := write.Exec(t.Context(), `INSERT INTO seen VALUES (1)`)
				wrote <- err
			}()
			var backend int
			wait.For(t, "a commit waits for the standby", func() bool { backend = watch(waiting); return backend != 0 })
			if err := crash(primary, backend); err != nil {
				t.Fatal(err)
			}
			if err := wait.Receive(t, "the end of the commit", wrote); err == nil {
				t.Fatal("the commit has succeeded without the standby")
			}
			_ = write.Close(t.Context())
			wait.For(t, "the connections ended", func() bool { return watch(`SELECT pg_backend_pid()`) != 0 && watch(database) == 0 })

			read.Reset()
			counted := make(chan string, 1)
			go func() {
				n, err := 0, pgerr.ErrNoStandby
				for pgerr.IsLost(err) && t.Context().Err() == nil { // the server may recover, too
					err = read.QueryRow(t.Context(), `SELECT count(*) FROM seen`).Scan(&n)
				}
				counted <- fmt.Sprint(n, err)
			}()
			wait.For(t, "the read waits for the standby", func() bool { return watch(waiting) != 0 || len(counted) > 0 })
			select {
			case got := <-counted:
				t.Fatalf("read without the standby: %s", got)
			default:
			}
			standby.Start()
			if got := wait.Receive(t, "the read", counted); got != "1 <nil>" {
				t.Errorf("read %s with the standby; want the row", got)
			}
		})
	}
}
