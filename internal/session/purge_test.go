package session_test

import (
	"context"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestOldKeysAreRemovedAroundALockedOne has more keys than a batch and a repeated request under one
// of them. The other keys are removed without waiting for it.
func TestOldKeysAreRemovedAroundALockedOne(t *testing.T) {
	t.Parallel()
	slow.Test(t, "waits for locks")
	w := newWorld(t)
	if _, err := w.Pool.Exec(t.Context(), `
		INSERT INTO idempotency_keys (workspace_id, route, key, hash, turn_id, created_at)
		SELECT $1, 'sendMessage', 'k' || n, '', (lpad(to_hex((extract(epoch FROM now() - interval '25 hours') * 1000)::bigint + n), 12, '0') || repeat('0', 20))::uuid,
		       now() - interval '25 hours' FROM generate_series(1, 2500) n`, w.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pool.Exec(t.Context(), `
		INSERT INTO idempotent_answers (workspace_id, route, key, hash, status, answer, created_at)
		SELECT $1, 'cancelTurn', 'k' || n, '', 200, '', now() - interval '25 hours' FROM generate_series(1, 2500) n`,
		w.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT FROM idempotency_keys WHERE key = 'k7' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	w.Replica(t)
	wait.For(t, "all keys but the locked one are gone", func() bool {
		var keys, answers int
		err := w.Pool.QueryRow(t.Context(),
			`SELECT (SELECT count(*) FROM idempotency_keys), (SELECT count(*) FROM idempotent_answers)`).Scan(&keys, &answers)
		return err == nil && keys == 1 && answers == 0
	})
}
