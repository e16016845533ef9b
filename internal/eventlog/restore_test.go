package eventlog_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestRestoredDatabaseGivesNoIDTwice restores a real PostgreSQL to a point in time. Rows written
// after that point are lost, but clients have seen them: their cursors are provably gone, and no
// other event gets one of their ids.
func TestRestoredDatabaseGivesNoIDTwice(t *testing.T) {
	t.Parallel()
	slow.Test(t, "restores a database")
	server := dbtest.NewServer(t, "restore_command=false")
	dsn := server.DSN()
	var ws workspace.Workspace
	var id uuid.UUID
	// write lets a server write a turn and returns the ids of its first and last event.
	write := func() (first, last int64) {
		t.Helper()
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.AfterConnect = eventlog.CheckLineage(slog.New(slog.NewTextHandler(t.Output(), nil)))
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if ws.ID == uuid.Nil {
			if ws, err = workspace.New(pool).Create(t.Context(), "w", "", ""); err != nil {
				t.Fatal(err)
			}
		}
		store := sessiontest.NewReplica(pool, eventlog.Options{}, session.Options{})
		err = store.Open(t.Context(), session.Ref{Workspace: ws.ID, ID: id}, func(tx *session.Tx) error {
			id = tx.SessionID()
			from, _, err := tx.Begin(t.Context(), session.NewTurn{ID: uuid.Must(uuid.NewV7()), Message: event.Message{Content: "hello"},
				MaxResponseSeconds: 60, MaxTurns: 5, Behind: true})
			first, last = from.Seq, tx.Head()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return first, last
	}
	_, before := write()

	server.Stop()
	backup := filepath.Join(filepath.Dir(server.Data()), "backup")
	copyTree(t, server.Data(), backup)
	server.Start()
	lostFirst, lost := write()
	if lostFirst <= before {
		t.Fatalf("ids %d after %d", lostFirst, before)
	}
	server.Stop()
	if err := os.RemoveAll(server.Data()); err != nil {
		t.Fatal(err)
	}
	copyTree(t, backup, server.Data())
	if err := os.WriteFile(filepath.Join(server.Data(), "recovery.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	server.Start() // recovers and continues on another timeline
	wait.For(t, "the end of the recovery", func() bool {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return false
		}
		defer conn.Close(t.Context())
		var recovering bool
		return conn.QueryRow(t.Context(), `SELECT pg_is_in_recovery()`).Scan(&recovering) == nil && !recovering
	})

	first, last := write()
	if first <= lost {
		t.Errorf("ids %d to %d belonged to lost events up to %d", first, last, lost)
	}
	pool := dbtest.Pool(t, dsn)
	store := sessiontest.NewReplica(pool, eventlog.Options{}, session.Options{})
	for cursor, foreign := range map[int64]bool{before: false, lostFirst + 1: true, lost: true, lost + 1: true, last: false} {
		h, err := store.HeadAt(t.Context(), ws.ID, id, cursor)
		if err != nil || h.Foreign != foreign {
			t.Errorf("cursor %d: foreign %v, want %v: %v", cursor, h.Foreign, foreign, err)
		}
	}
}

// copyTree copies a directory with its owners.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
}
