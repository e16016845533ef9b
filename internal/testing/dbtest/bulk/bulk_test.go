package bulk_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/bulk"
	"github.com/parley-server/parley/internal/testing/slow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sessions are enough for PostgreSQL to choose the plans that it chooses for a million.
const sessions = 20_000

// filled returns a connection to a database with sessions.
func filled(t *testing.T) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dbtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if err := bulk.Fill(ctx, conn, sessions); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, labels, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	return conn
}

// labels gives users and metadata to half of the sessions, and titles to a few. One user has a
// quarter of the sessions with a user, and one session in ten has been in use for a day.
const labels = `
UPDATE sessions s SET end_user = 'user-' || CASE WHEN n % 4 = 0 THEN 0 ELSE n % 1000 END, metadata = jsonb_build_object('order', n::text, 'plan', CASE WHEN n % 3 = 0 THEN 'gold' ELSE 'free' END)
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM sessions) x WHERE x.id = s.id AND n % 2 = 0;
UPDATE sessions s SET title = 'Renamed ' || n, titled = true FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM sessions) x WHERE x.id = s.id AND n % 500 = 0;
UPDATE sessions SET updated_at = least(now(), created_at + interval '1 day') WHERE right(id::text, 1) = '0';
ANALYZE sessions`

// needed are indexes, each with a query that is slow without it.
var needed = map[string]string{
	"sessions_recent":                 "sessions  cursor",
	"sessions_unstarted":              "sessions not_started",
	"sessions_user":                   "sessions  user",
	"sessions_metadata":               "sessions  metadata",
	"sessions_long":                   "sessions  before",
	"sessions_title":                  "sessions  title",
	"messages_words":                  "sessions  word",
	"turns_open":                      "turns submitted",
	"turns_recent":                    "turns since",
	"turns_unanswered":                "turns canceled",
	"turns_long":                      "retention, log",
	"turns_ended":                     "chain, turns",
	"approvals_status":                "approvals canceled",
	"approvals_inbox":                 "approvals",
	"callback_deliveries_undelivered": "callbacks failed",
	"files_direction":                 "files out",
	"messages_session":                "messages desc",
	"egress_requests_recent":          "session egress",
}

// TestListsReadTheirPageAlone explains every list with every filter. None reads much more than its
// page, or a partition that the time excludes; without its index, each does.
func TestListsReadTheirPageAlone(t *testing.T) {
	t.Parallel()
	slow.Test(t, "writes many rows")
	conn := filled(t)
	all := queries(findKnown(t, conn))
	for _, q := range all {
		if p := explain(t, conn, q); len(faultsOf(q, p)) > 0 {
			t.Errorf("%s: %v\n\t%s", q.name, faultsOf(q, p), p.brief())
		}
	}
	findOld(t, conn)
	for index, name := range needed {
		i := slices.IndexFunc(all, func(q query) bool { return strings.TrimSpace(q.name) == name })
		if i < 0 {
			t.Fatalf("no query %q", name)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "DROP INDEX "+index); err != nil {
			t.Fatal(err)
		}
		if p := explain(t, conn, all[i]); len(faultsOf(all[i], p)) == 0 {
			t.Errorf("%s does not need %s: %s", name, index, p.brief())
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// findOld searches words that only old sessions have, which the index finds.
func findOld(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var want, got uuid.UUID
	err := conn.QueryRow(t.Context(), `UPDATE messages SET content = 'A narwhal.' WHERE id = (
		SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id WHERE s.workspace_id = $1 ORDER BY s.updated_at LIMIT 1) RETURNING session_id`, bulk.Workspace).Scan(&want)
	if err != nil {
		t.Fatal(err)
	}
	sql, args := session.SummaryQuery{Search: "narwhal", Limit: 1}.SQL(bulk.Workspace, nil, uuid.Nil)
	if err := conn.QueryRow(t.Context(), "SELECT id FROM ("+sql+") x", args...).Scan(&got); err != nil || got != want {
		t.Errorf("the words of %s find %s, %v", want, got, err)
	}
}
