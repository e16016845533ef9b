package replan_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// recording is a statement that stores the actor which PostgreSQL sees.
const recording = "INSERT INTO recorded VALUES ($1, current_setting('parley.actor', true)) RETURNING actor"

// TestStatementsNameTheActor runs each kind of statement with an actor and then without one on the
// same connection.
func TestStatementsNameTheActor(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t, dbtest.Empty(t)+"&pool_max_conns=1")
	if _, err := pool.Exec(t.Context(), "CREATE TABLE recorded (n bigint, actor text)"); err != nil {
		t.Fatal(err)
	}
	acting := actor.With(t.Context(), actor.Actor{Kind: actor.Key, ID: "7F3kQ2zB", Address: "192.0.2.1"})
	want := `{"kind":"key","id":"7F3kQ2zB","address":"192.0.2.1"}`
	for name, run := range statements(pool) {
		for _, stale := range []bool{false, true} {
			if _, err := pool.Exec(t.Context(), "TRUNCATE recorded"); err != nil {
				t.Fatal(err)
			}
			for _, ctx := range []context.Context{acting, t.Context()} {
				if err := run(ctx); err != nil {
					t.Errorf("%s, stale %v: %v", name, stale, err)
				}
			}
			rows, _ := pool.Query(t.Context(), "SELECT coalesce(actor, '') FROM recorded")
			if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(got) != 2 || got[0] != want || got[1] != "" {
				t.Errorf("%s, stale %v: recorded %q, %v", name, stale, got, err)
			}
			change := map[bool]string{false: "varchar", true: "text"}[stale] // plans that return it are stale now
			if _, err := pool.Exec(t.Context(), "ALTER TABLE recorded ALTER COLUMN actor TYPE "+change); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// statements are the ways to run recording.
func statements(pool *pgxpool.Pool) map[string]func(context.Context) error {
	p := replan.Pool{Pool: pool}
	return map[string]func(context.Context) error{
		"exec": func(ctx context.Context) error {
			tag, err := p.Exec(ctx, recording, 1)
			if err == nil && tag.RowsAffected() != 1 {
				err = pgx.ErrNoRows
			}
			return err
		},
		"row": func(ctx context.Context) error {
			var text *string
			return p.QueryRow(ctx, recording, 1).Scan(&text)
		},
		"rows": func(ctx context.Context) error {
			rows, err := p.Query(ctx, recording, 1)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[*string])
			return err
		},
		"transaction": func(ctx context.Context) error {
			return replan.InTx(ctx, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, recording, 1)
				return err
			})
		},
		"queued": func(ctx context.Context) error {
			return replan.Pipelined(ctx, pool, func(tx *replan.Tx) error {
				tx.Queue(recording, 1)
				return nil
			})
		},
	}
}
