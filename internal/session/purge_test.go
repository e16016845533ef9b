package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/session"
)

// TestOldKeysAreRemovedAroundALockedOne has more keys than a batch, and a request that comes again
// under one of them. The others go without waiting for it.
func TestOldKeysAreRemovedAroundALockedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.pool.Exec(t.Context(), `
		INSERT INTO idempotency_keys (workspace_id, route, key, hash, turn_id, created_at)
		SELECT $1, 'sendMessage', 'k' || n, '', (lpad(to_hex((extract(epoch FROM now() - interval '25 hours') * 1000)::bigint + n), 12, '0') || repeat('0', 20))::uuid,
		       now() - interval '25 hours' FROM generate_series(1, 2500) n`, w.workspace.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), `
		INSERT INTO idempotent_answers (workspace_id, route, key, hash, status, answer, created_at)
		SELECT $1, 'cancelTurn', 'k' || n, '', 200, '', now() - interval '25 hours' FROM generate_series(1, 2500) n`, w.workspace.ID); err != nil {
		t.Fatal(err)
	}
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT FROM idempotency_keys WHERE key = 'k7' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	w.replica(t)
	await(t, "all keys but the locked one are gone", func() bool {
		var keys, answers int
		err := w.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM idempotency_keys), (SELECT count(*) FROM idempotent_answers)`).Scan(&keys, &answers)
		return err == nil && keys == 1 && answers == 0
	})
}

// TestPartitionsAreMadeBesideAReader has a transaction that has read the log and stays. Making a
// partition does not wait for it, so no writer waits behind.
func TestPartitionsAreMadeBesideAReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := session.New(w.pool, session.Options{})
	var delta, record string
	err := w.pool.QueryRow(t.Context(), `SELECT (SELECT max(name) FROM events_partition_ends() WHERE delta), (SELECT max(name) FROM events_partition_ends() WHERE NOT delta)`).
		Scan(&delta, &record)
	if err == nil {
		_, err = w.pool.Exec(t.Context(), "DROP TABLE "+delta+", "+record)
	}
	if err != nil {
		t.Fatal(err)
	}
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM events`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	var there bool
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) = 2 FROM events_partition_ends() WHERE name IN ($1, $2)`, delta, record).Scan(&there); err != nil || !there {
		t.Errorf("%s and %s were not made again: %v", delta, record, err)
	}
}
