package app_test

import (
	"testing"
	"time"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func TestPeriodsCanBeGivenInDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"400d": 9600 * time.Hour, "36h": 36 * time.Hour, "24h": 24 * time.Hour,
		"90m": 90 * time.Minute} {
		cfg, err := app.Load(app.Sources{Environ: []string{"PARLEY_REPLAY_WINDOW=1m", "PARLEY_AUDIT_RETENTION=" + text}})
		if err != nil || time.Duration(cfg.AuditRetention) != want {
			t.Errorf("%s: %s, %v", text, cfg.AuditRetention, err)
		}
	}
	for p, want := range map[time.Duration]string{400 * 24 * time.Hour: "400d", 36 * time.Hour: "36h0m0s"} {
		if got := app.Period(p).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestServeRemovesWhatIsPastItsTime checks that a start removes expired sessions with their files
// and their folders.
func TestServeRemovesWhatIsPastItsTime(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	exec(t, dsn, `INSERT INTO workspaces (id, slug, name) VALUES (gen_random_uuid(), 'w', 'w')`)
	exec(t, dsn, `INSERT INTO sessions (id, workspace_id, updated_at) SELECT gen_random_uuid(), id, now() - d * interval '1 day' FROM `+
		`workspaces, generate_series(1, 3) d`)
	exec(t, dsn, `INSERT INTO files (id, workspace_id, direction, state, filename, mime, unrestricted, session_id)
		SELECT gen_random_uuid(), workspace_id, 'out', 'ready', 'a.txt', 'text/plain', true, id FROM sessions`)
	exec(t, dsn, `INSERT INTO workdirs (session_id, workspace_id, epoch) SELECT id, workspace_id, 1 FROM sessions`)
	exec(t, dsn, `INSERT INTO work_blobs (id, workspace_id, sha256, loose_at) SELECT id, workspace_id, sha256(id::text::bytea), `+
		`NULL FROM sessions`)
	exec(t, dsn, `INSERT INTO work_files (session_id, workspace_id, path, kind, executable, size, sha256)
		SELECT id, workspace_id, 'a.txt', 'file', false, 0, sha256(id::text::bytea) FROM sessions`)
	_, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_AUDIT_RETENTION=60h")
	if err != nil {
		t.Fatal(err)
	}
	pool := dbtest.Pool(t, dsn)
	deadline := time.After(20 * time.Second)
	for {
		var sessions, files, blobs int
		if err := pool.QueryRow(t.Context(),
			`SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM files), (SELECT count(*) FROM work_blobs)`).Scan(&sessions,
			&files, &blobs); err != nil {
			t.Fatal(err)
		}
		if sessions == 2 && files == 2 && blobs == 2 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d sessions, %d files and %d blobs are left", sessions, files, blobs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
