package app_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/migrations"
)

// TestLimitedRoleRunsTheService has one role that owns the schema and another that runs the service:
// turns with their River jobs, new partitions, the drop of old ones and an erasure work. That role
// can change the log in no other way.
func TestLimitedRoleRunsTheService(t *testing.T) {
	t.Parallel()
	_, owner, limited, role := dbtest.Roles(t)
	if _, err := migrations.Up(t.Context(), owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Grant(t.Context(), owner, role); err != nil {
		t.Fatal(err)
	}
	owners := dbtest.Pool(t, owner)
	pool := dbtest.Pool(t, limited)
	must(t, owners, `CREATE TABLE events_delta_20200101 PARTITION OF events_delta FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')`)

	s := apitest.New(t, apitest.Options{Pool: pool})
	started, err := s.Turns.Start(t.Context(), turn.Request{Workspace: s.Workspace, Command: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the end of the turn", func() bool {
		v, err := s.Sessions.Turn(t.Context(), s.Workspace.ID, started.Turn)
		return err == nil && v.Turn.State == session.Completed
	})
	refuseChanges(t, pool, "42501")
	for _, sql := range []string{
		"SET parley.erasing = 'on'; UPDATE events SET data = '{}'", "SET session_replication_role = replica",
		"ALTER TABLE events DISABLE TRIGGER ALL",
		"ALTER TABLE events_record DISABLE TRIGGER events_keep", "DROP TRIGGER events_keep ON events", "DROP TABLE events_record",
		"CREATE OR REPLACE FUNCTION events_keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
		"UPDATE admin_log SET actor_name = 'x'", "DELETE FROM admin_log", "TRUNCATE admin_log", "ALTER TABLE admin_log DISABLE TRIGGER ALL",
		"ALTER TABLE events DISABLE TRIGGER events_keep", "ALTER TABLE events_record DETACH PARTITION events_record_203001",
		"CREATE RULE r AS ON INSERT TO events DO INSTEAD NOTHING",
		"CREATE TABLE own (LIKE events); ALTER TABLE events_record ATTACH PARTITION own FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')",
		"CREATE TRIGGER t BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION events_keep()", "ALTER TABLE events OWNER TO CURRENT_USER",
		"SELECT 1 FROM events FOR UPDATE", "SET parley.erasing = 'on'; DELETE FROM events_delta",
	} {
		refuse(t, pool, sql, "42501")
	}
	refuseChanges(t, owners, "23001")
	refuse(t, owners, "BEGIN; SET LOCAL search_path = pg_temp, public; TRUNCATE events; COMMIT", "23001")

	if err := s.EventLog.Prepare(t.Context()); err != nil {
		t.Error(err)
	}
	wait.For(t, "the drop of the old partition", func() bool {
		var gone bool
		err := pool.QueryRow(t.Context(), `SELECT to_regclass('events_delta_20200101') IS NULL`).Scan(&gone)
		return err == nil && gone
	})
	if _, err := s.Sessions.EraseContent(t.Context(), started.Session, "test"); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE session_id = $1 AND data::text <> '{}'`,
		started.Session).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d events have their content after an erasure: %v", left, err)
	}
}

// TestServeWithALimitedRole starts a server with such a role. It migrates nothing.
func TestServeWithALimitedRole(t *testing.T) {
	t.Parallel()
	_, owner, limited, role := dbtest.Roles(t)
	if _, err := migrations.Up(t.Context(), owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Grant(t.Context(), owner, role); err != nil {
		t.Fatal(err)
	}
	at, _, err := serve(t, app.Options{}, "DATABASE_URL="+limited, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the service is ready", func() bool {
		res, err := http.Get(at + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	http.DefaultClient.CloseIdleConnections()
}

// TestUpGrantsNewTables lets a later migration make a table: the service's role can use it.
func TestUpGrantsNewTables(t *testing.T) {
	t.Parallel()
	_, owner, limited, role := dbtest.Roles(t)
	if _, err := migrations.Up(t.Context(), owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Grant(t.Context(), owner, role); err != nil {
		t.Fatal(err)
	}
	must(t, dbtest.Pool(t, owner), "CREATE TABLE later (id int)")
	pool := dbtest.Pool(t, limited)
	refuse(t, pool, "SELECT * FROM later", "42501")
	if _, err := migrations.Up(t.Context(), owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	must(t, pool, "SELECT * FROM later")
	refuseChanges(t, pool, "42501")
}

// refuseChanges checks that a role cannot change a row of the log, in the log or in a partition.
func refuseChanges(t *testing.T, pool *pgxpool.Pool, code string) {
	t.Helper()
	if code != "42501" { // a trigger for each row needs one
		must(t, pool, `INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data) SELECT gen_random_uuid(), gen_random_uuid(),`+
			` now(), d, 1, 'text', '{}' FROM (VALUES (true), (false)) v (d)`)
	}
	var parts []string
	if err := pool.QueryRow(t.Context(), `SELECT array_agg(DISTINCT p) FROM (SELECT tableoid::regclass::text AS p FROM events UNION `+
		`SELECT 'events' UNION SELECT 'events_record' UNION SELECT 'events_delta') x`).Scan(&parts); err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		for _, sql := range []string{"UPDATE " + part + " SET kind = kind", "DELETE FROM " + part, "TRUNCATE " + part} {
			refuse(t, pool, sql, code)
		}
	}
	for _, sql := range []string{
		"INSERT INTO events SELECT * FROM events ON CONFLICT (session_id, seq, at, delta) DO UPDATE SET kind = 'x'",
		"MERGE INTO events e USING events o ON e.seq = o.seq WHEN MATCHED THEN UPDATE SET kind = 'x'",
		"MERGE INTO events e USING events o ON e.seq = o.seq WHEN MATCHED THEN DELETE",
		"COPY (DELETE FROM events RETURNING seq) TO STDOUT", "WITH gone AS (DELETE FROM events RETURNING seq) SELECT count(*) FROM gone",
		"UPDATE admin_log SET actor_name = 'x'", "DELETE FROM admin_log", "TRUNCATE admin_log",
	} {
		refuse(t, pool, sql, code)
	}
}

// refuse checks that PostgreSQL refuses a statement.
func refuse(t *testing.T, pool *pgxpool.Pool, sql, code string) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().Exec(t.Context(), sql).ReadAll()
	_, _ = conn.Conn().PgConn().Exec(t.Context(), "ROLLBACK").ReadAll()
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != code {
		t.Errorf("%s: %v, want SQLSTATE %s", sql, err, code)
	}
}

func must(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
