package eventlog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestPartitionsAreMadeBesideAReader keeps a transaction open that has read the log. Creating a
// partition does not wait for it, so no writer waits behind it.
func TestPartitionsAreMadeBesideAReader(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := sessiontest.NewReplica(w.Pool, eventlog.Options{}, session.Options{})
	var delta, record string
	err := w.Pool.QueryRow(t.Context(), `SELECT (SELECT max(name) FROM events_partition_ends() WHERE delta), (SELECT max(name) FROM `+
		`events_partition_ends() WHERE NOT delta)`).
		Scan(&delta, &record)
	if err == nil {
		_, err = w.Pool.Exec(t.Context(), "DROP TABLE "+delta+", "+record)
	}
	if err != nil {
		t.Fatal(err)
	}
	tx, err := w.Pool.Begin(t.Context())
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
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) = 2 FROM events_partition_ends() WHERE name IN ($1, $2)`, delta,
		record).Scan(&there); err != nil || !there {
		t.Errorf("%s and %s were not recreated: %v", delta, record, err)
	}
}

// A drop that waits for a long-running reader of the log gives up and lets the waiting writers
// pass.
func TestDroppingLetsTrafficPass(t *testing.T) {
	t.Parallel()
	slow.Test(t, "races many writers")
	w := sessiontest.New(t)
	s := w.Still(t)
	w.Days(t, 3)
	lease, from := w.Begin(t, s, "hello")
	auditor, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer auditor.Rollback(context.WithoutCancel(t.Context()))
	if _, err := auditor.Exec(t.Context(), `SELECT FROM events LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	tried := make(chan error, 1)
	go func() {
		_, err := s.ApplyRetention(t.Context())
		tried <- err
	}()
	written := 0
	for done := false; !done; written++ {
		err := s.Update(t.Context(), from.Session, func(tx *session.Tx) error {
			_, err := tx.Append(t.Context(), lease.Turn, event.ToolUse{Tool: "t"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-tried:
			if done = true; err == nil || !strings.Contains(err.Error(), "55P03") {
				t.Errorf("a drop under a lock: %v", err)
			}
		default:
		}
	}
	if err := auditor.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.Deltas(t) != 1 || len(s.Rows(t, from)) < written {
		t.Errorf("%d partitions, %d of %d rows", w.Deltas(t), len(s.Rows(t, from)), written)
	}
	if done := sessiontest.Retain(t, s); len(done.Partitions) != 1 {
		t.Errorf("dropped %v", done.Partitions)
	}
}
