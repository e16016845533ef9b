package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/migrations"
)

// TestAuditorReadsViewsAlone grants the views to a role, which can read each of them, no table, and
// cannot write or call a function that does. Without the right to make roles the error has the SQL.
func TestAuditorReadsViewsAlone(t *testing.T) {
	t.Parallel()
	admin, owner, auditor, role := dbtest.Roles(t)
	if _, err := migrations.Up(t.Context(), owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if denied, ok := errors.AsType[*migrations.NotAllowed](migrations.GrantAudit(t.Context(), owner, role)); !ok ||
		!strings.Contains(denied.SQL, "GRANT parley_auditor TO") {
		t.Errorf("the owner may not make roles: %v", denied)
	}
	refuse(t, auditor, "SELECT * FROM audit.events")
	if err := migrations.GrantAudit(t.Context(), admin, role); err != nil {
		t.Fatal(err)
	}
	if err := migrations.GrantAudit(t.Context(), owner, role); err != nil {
		t.Errorf("the owner repeats a grant that an administrator has made: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), auditor)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = 'audit'::regnamespace AND relkind = 'v'`)
	views, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(views) < 15 {
		t.Fatalf("%v, %v", views, err)
	}
	for _, v := range views {
		if _, err := conn.Exec(t.Context(), "SELECT * FROM audit."+v); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
	for _, sql := range []string{"SELECT * FROM events", "SELECT * FROM sessions", "SELECT secret_hash FROM api_keys",
		"SELECT value FROM credentials",
		"SET default_transaction_read_only = off; SELECT events_erase(gen_random_uuid(), 1)",
		"SET default_transaction_read_only = off; SELECT events_partitions(4)",
		"SET default_transaction_read_only = off; INSERT INTO audit.admin_log (object) VALUES ('x')"} {
		refuse(t, auditor, sql)
	}
	if err := migrations.RevokeAudit(t.Context(), admin, role); err != nil {
		t.Fatal(err)
	}
	refuse(t, auditor, "SELECT * FROM audit.events")
}

// refuse checks that a role lacks the privilege for a statement.
func refuse(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql).ReadAll()
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
		t.Errorf("%s: %v", sql, err)
	}
}
