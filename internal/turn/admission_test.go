package turn_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// A server with more messages to store than its queue holds rejects the others before it stores
// anything, and stores those in the queue.
func TestFullQueueRefusesBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	t.Run("plain messages", func(t *testing.T) {
		t.Parallel()
		testFullQueue(t, 64, func(w *world, _ int) turn.Request { return turn.Request{Workspace: w.workspace, Command: "hello"} })
	})
	t.Run("messages of callers", func(t *testing.T) {
		t.Parallel()
		testFullQueue(t, 6, func(w *world, i int) turn.Request {
			return turn.Request{Workspace: w.workspace, Command: "hello", CallerID: strconv.Itoa(i)}
		})
	})
}

// testFullQueue sends more messages of one workspace than the places and the queue can hold.
func testFullQueue(t *testing.T, places int, request func(*world, int) turn.Request) {
	const queue = 3
	w := newWorld(t, &modeltest.Script{})
	r := w.replica(t, func(c *turn.Config) { c.Queue, c.StartTimeout, c.Workers = queue, time.Minute, 0 })
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE turns IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	messages, admitted := places+queue+30, places+queue
	results := make(chan error, messages)
	var all sync.WaitGroup
	for i := range messages {
		all.Go(func() {
			_, err := r.turns.Start(t.Context(), request(w, i))
			results <- err
		})
	}
	// The places of one workspace and the queue are full; all other messages are rejected.
	for range messages - admitted {
		err := wait.Receive(t, "a result", results)
		if f := fault.From(err); f == nil || f.Code != fault.Unavailable || f.Detail.RetryAfter <= 0 || !strings.Contains(f.Message,
			"Nothing was stored") {
			t.Errorf("a message beyond the queue: %v", err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all goroutines", all.Wait)
	close(results)
	for err := range results {
		if err != nil {
			t.Errorf("a message in the queue: %v", err)
		}
	}
	var stored int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&stored); err != nil || stored != admitted {
		t.Errorf("%d messages were stored, want %d: %v", stored, admitted, err)
	}
}

// TestLostAnswerToACommitIsNoFailure lets a commit outlast the time limit for storing a message; a
// slow machine needs some seconds to reach it. The message is stored, so the response must not be a
// failure.
func TestLostAnswerToACommitIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	if _, err := w.pool.Exec(t.Context(), `
		CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			BEGIN
				PERFORM pg_sleep(120);
			EXCEPTION WHEN query_canceled THEN
				-- PostgreSQL 15 signals the process and its group: one request can cancel twice.
				BEGIN PERFORM pg_sleep(0.3); EXCEPTION WHEN query_canceled THEN NULL; END;
			END;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON turns DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()`); err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, func(c *turn.Config) { c.StartTimeout, c.ConfirmTimeout, c.Workers = 20*time.Second, time.Minute, 0 })
	started, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := r.sessions.Answer(t.Context(), w.workspace.ID, started.Turn)
	if err != nil || found.SessionID != started.Session || found.StartSeq != started.From.Seq+1 || started.Session == uuid.Nil {
		t.Errorf("started %+v, stored %+v: %v", started, found, err)
	}
}

// A message that was certainly not stored still returns a failure.
func TestRefusedCommitIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	if _, err := w.pool.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the disk is full' USING ERRCODE = 'disk_full'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON turns DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`); err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	_, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "hello"})
	if err == nil || errors.Is(err, session.ErrUnknownOutcome) {
		t.Errorf("the commit failed, and Start returned %v", err)
	}
}
