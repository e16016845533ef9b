package chain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/sessiontest"
)

// world is a database with a chain, which no process extends by itself.
type world struct {
	*sessiontest.World
	keys    *vault.Keyring
	others  *vault.Keyring // of another server
	chain   *chain.Store
	replica *sessiontest.Replica
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := newStill(t)
	w.replica.Start(t)
	return w
}

// newStill is newWorld with a replica that does nothing by itself, and applies no retention.
func newStill(t testing.TB) *world {
	t.Helper()
	w := &world{World: sessiontest.New(t), keys: parseKeys(t, vault.GenerateKey())}
	w.chain = chain.New(w.Pool, w.keys, chain.Options{})
	w.replica = w.still(t, w.chain)
	return w
}

// still returns a replica that records notices.
func (w *world) still(t testing.TB, c *chain.Store) *sessiontest.Replica {
	t.Helper()
	return sessiontest.NewReplica(dbtest.Pool(t, w.DSN), eventlog.Options{Dropped: c.NoteDrop},
		session.Options{Erase: []session.Eraser{c.Erase}, Late: c.NoteLate})
}

func parseKeys(t testing.TB, text string) *vault.Keyring {
	t.Helper()
	keys, err := vault.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// talk runs a turn of a new session that has two runs of text, a tool call and a reply.
func (w *world) talk(t testing.TB, r *sessiontest.Replica) (session, turn uuid.UUID) {
	t.Helper()
	lease, from := w.Begin(t, r, "hello")
	w.write(t, r, lease)
	sessiontest.End(t, r, lease)
	return from.Session, lease.Turn
}

func (w *world) write(t testing.TB, r *sessiontest.Replica, lease eventlog.Lease) {
	t.Helper()
	to := r.Writer(lease)
	for i := range 9 {
		body := event.Body(event.Text{Text: fmt.Sprintf("word %d ", i)})
		switch i {
		case 4:
			w.Exec(t, `SELECT nextval('events_seq_seq')`) // as an event of another session would
			body = event.ToolUse{Tool: "read", ToolUseID: "t1"}
		case 5:
			body = event.ToolResult{Tool: "read", OK: true, Output: "found", ToolUseID: "t1"}
		}
		if err := to.Append(t.Context(), body); err != nil {
			t.Fatal(err)
		}
		if err := to.Flush(t.Context()); err != nil { // a row for each delta
			t.Fatal(err)
		}
	}
}

func (w *world) extend(t testing.TB) {
	t.Helper()
	if err := w.chain.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// seq returns the id of the n-th event of a session.
func (w *world) seq(t testing.TB, id uuid.UUID, n int) (seq int64) {
	t.Helper()
	if err := w.Pool.QueryRow(t.Context(), `SELECT seq FROM events WHERE session_id = $1 AND ord = $2`, id, n).Scan(&seq); err != nil {
		t.Fatal(err)
	}
	return seq
}

// tamper runs statements as the owner of the database, whom no trigger stops.
func (w *world) tamper(t testing.TB, statements ...string) {
	t.Helper()
	all := "BEGIN; SET LOCAL session_replication_role = replica; " + strings.Join(statements, "; ") + "; COMMIT"
	if _, err := w.Pool.Exec(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// verify returns what a verification finds.
func (w *world) verify(t testing.TB, v chain.Verification) []chain.Finding {
	t.Helper()
	return verifyOn(t, w.Pool, w.keys, v)
}

func verifyOn(t testing.TB, pool *pgxpool.Pool, keys *vault.Keyring, v chain.Verification) (found []chain.Finding) {
	t.Helper()
	if v.Keys == nil {
		v.Keys = chain.PublicKeysOf(keys)
	}
	v.Found = func(f chain.Finding) error {
		found = append(found, f)
		return nil
	}
	sum, err := chain.New(pool, nil, chain.Options{}).Verify(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Findings != len(found) {
		t.Errorf("%d findings, and %d were reported", sum.Findings, len(found))
	}
	return found
}

// isClean checks that a verification finds nothing.
func (w *world) isClean(t testing.TB, v chain.Verification) {
	t.Helper()
	for _, f := range w.verify(t, v) {
		t.Errorf("%s: %s", f.Kind, f.Text)
	}
}

// head returns the newest head.
func (w *world) head(t testing.TB) chain.Head {
	t.Helper()
	h, ok, err := w.chain.Head(t.Context())
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	return h
}
