package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// endedTurns stores a turn of each of the last forty days, in two states, by two users.
const endedTurns = `WITH d AS (
    SELECT n, gen_random_uuid() AS id, gen_random_uuid() AS session_id, now() - n * interval '1 day' - interval '2 hours' AS at FROM generate_series(0, 39) n
), s AS (
    INSERT INTO sessions (id, workspace_id, created_at, updated_at) SELECT session_id, $1, at, at FROM d
), m AS (
    INSERT INTO messages (id, session_id, turn_id, workspace_id, role, status, tool_calls, usage, first_seq, last_seq, created_at)
    SELECT gen_random_uuid(), session_id, id, $1, 'assistant', 'completed',
           json_build_array(json_build_object('tool', 'bash', 'ok', n % 3 > 0), json_build_object('tool', repeat('x', 5000), 'ok', true)),
           json_build_object('model', 'm' || n % 2, 'input_tokens', 100 + n, 'output_tokens', 10, 'cost_usd', CASE WHEN n % 2 = 0 THEN 0.25 END), n, n, at FROM d
)
INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, key_id, end_user, agent, agent_version, created_at, finished_at, state_at)
SELECT id, session_id, $1, CASE WHEN n % 4 = 0 THEN 'failed' ELSE 'completed' END, 600, 50, 'key0000' || n % 3, 'user-' || n % 2, 'default', n % 2, at, at, at FROM d`

// TestUsageIsSummedByDays compares the reports from the turns with those from the sums of days.
// Erasing a session removes its user from the sums, and the rest of them stays.
func TestUsageIsSummedByDays(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store := session.New(pool, eventlog.New(pool, eventlog.Options{}), session.Options{})
	ws, err := workspace.New(pool).Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), endedTurns, ws.ID); err != nil {
		t.Fatal(err)
	}
	since := time.Now().AddDate(0, 0, -30)
	report := func() session.Usage {
		t.Helper()
		u, err := store.Usage(t.Context(), ws.ID, since, session.ByDay, 10)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	tools := func() []session.ToolUse {
		t.Helper()
		list, err := store.ToolUses(t.Context(), ws.ID, since)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before, called := report(), tools()
	if len(called) != 2 || called[0].Tool != "bash" || called[0].Calls < 30 || called[0].Failed < 10 || called[0].Failed > 11 {
		t.Fatalf("the calls are %+v", called)
	}
	if len(before.Times) < 30 || len(before.Keys) != 3 || len(before.Users) != 2 || len(before.Agents) != 2 || before.Agents[0].Name == "" {
		t.Fatalf("the report is %+v", before)
	}
	for range 2 {
		if err := store.SumUsage(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, pool, "usage_days"); n < 100 {
		t.Errorf("%d sums", n)
	}
	if diff := cmp.Diff(before, report()); diff != "" {
		t.Errorf("the sums differ from the turns:\n%s", diff)
	}
	if diff := cmp.Diff(called, tools()); diff != "" {
		t.Errorf("the sums of calls differ from the turns:\n%s", diff)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE turns SET key_id = 'changed' WHERE state_at < now() - interval '3 days'`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Keys, report().Keys); diff != "" {
		t.Errorf("days that are summed are read again:\n%s", diff)
	}
	var id uuid.UUID
	if err := pool.QueryRow(t.Context(), `SELECT session_id FROM turns WHERE end_user = 'user-1' ORDER BY created_at LIMIT 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := store.EraseContent(context.WithoutCancel(t.Context()), id, "test"); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM usage_days WHERE subject = 'user-1'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d sums name an erased user, %v", left, err)
	}
	if diff := cmp.Diff(before.Times, report().Times); diff != "" {
		t.Errorf("the erasure changed the sums:\n%s", diff)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
