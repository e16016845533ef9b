package session_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
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
// Erasing a session makes its user unknown in the sums, and the totals stay.
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
	if err := pool.QueryRow(t.Context(), `SELECT session_id FROM turns WHERE end_user = 'user-1' ORDER BY created_at LIMIT 1`).Scan(
		&id); err != nil {
		t.Fatal(err)
	}
	if _, err := store.EraseContent(context.WithoutCancel(t.Context()), id, "test"); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM usage_days WHERE subject = 'user-1'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d sums name an erased user, %v", left, err)
	}
	after := report()
	if diff := cmp.Diff(before.Times, after.Times); diff != "" {
		t.Errorf("the erasure changed the sums:\n%s", diff)
	}
	totals := func(users []session.UsageRow) (all session.UsageRow) {
		for _, u := range users {
			all.Turns, all.InputTokens = all.Turns+u.Turns, all.InputTokens+u.InputTokens
		}
		return all
	}
	if diff := cmp.Diff(totals(before.Users), totals(after.Users)); diff != "" {
		t.Errorf("the erasure changed the totals of users:\n%s", diff)
	}
}

// TestASumDoesNotKeepAnErasedUser erases a session while its day is summed.
func TestASumDoesNotKeepAnErasedUser(t *testing.T) {
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
	var id uuid.UUID
	err = pool.QueryRow(t.Context(),
		`WITH t AS (UPDATE turns SET end_user = 'anna' WHERE id = (SELECT id FROM turns ORDER BY state_at LIMIT 1) RETURNING *),
		s AS (INSERT INTO usage_summed SELECT (state_at AT TIME ZONE 'UTC')::date - 1 FROM t) SELECT session_id FROM t`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	waits := func(kind string) bool {
		var n int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = `+
			`current_database()) AND NOT granted AND locktype = $1`, kind).Scan(&n)
		return err == nil && n > 0
	}
	ended := make(chan error, 2)
	var erased atomic.Bool
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "LOCK TABLE usage_summed IN SHARE MODE"); err != nil {
			return err
		}
		go func() { ended <- store.SumUsage(t.Context()) }()
		wait.For(t, "the sum to be stored", func() bool { return waits("relation") })
		go func() {
			_, err := store.EraseContent(t.Context(), id, "test")
			erased.Store(true)
			ended <- err
		}()
		wait.For(t, "the erasure waits or ends", func() bool { return waits("advisory") || erased.Load() })
		return nil
	})
	if err := errors.Join(err, wait.Receive(t, "the first", ended), wait.Receive(t, "the second", ended)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM usage_days WHERE subject = 'anna'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d sums name an erased user, %v", left, err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
