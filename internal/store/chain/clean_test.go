package chain_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/sessiontest"
)

// TestErasureKeepsTheChain erases a session between others. Its digests are gone, the events that
// stay are covered by another link, and a change of them is found.
func TestErasureKeepsTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.talk(t, w.replica)
	id, _ := w.talk(t, w.replica)
	w.extend(t)
	heads := []chain.Head{w.head(t)}
	w.talk(t, w.replica)
	if _, err := w.replica.EraseContent(t.Context(), id, "test"); err != nil {
		t.Fatal(err)
	}
	w.isClean(t, chain.Verification{Heads: heads}) // the next link is not made yet
	if n := w.Count(t, `SELECT count(*) FROM chain_links WHERE session_id = $1 AND (entries IS NOT NULL OR salt IS NOT NULL)`, id); n != 0 {
		t.Errorf("%d links have digests of erased events", n)
	}
	w.extend(t)
	w.isClean(t, chain.Verification{Heads: append(heads, w.head(t))})
	if n := w.Count(t, `SELECT count(*) FROM chain_links WHERE session_id = $1 AND kind = 'erased'`, id); n != 1 {
		t.Errorf("%d links record the erasure", n)
	}
	w.tamper(t, fmt.Sprintf(`UPDATE events SET kind = 'usage' WHERE session_id = '%s' AND ord = 8`, id))
	if found := w.verify(t, chain.Verification{}); len(found) != 1 || found[0].Kind != chain.Changed || found[0].Ord != 8 {
		t.Errorf("%+v", found)
	}
}

// TestFeedbackIsCovered adds an event after the end of its turn.
func TestFeedbackIsCovered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, turn := w.talk(t, w.replica)
	w.extend(t)
	if _, err := w.replica.Rate(t.Context(), w.Workspace.ID, id, turn, event.Feedback{Rating: event.Good}); err != nil {
		t.Fatal(err)
	}
	w.extend(t)
	w.isClean(t, chain.Verification{})
	w.tamper(t, fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND kind = 'feedback'`, id))
	if found := w.verify(t, chain.Verification{}); len(found) != 1 || found[0].Kind != chain.Removed {
		t.Errorf("%+v", found)
	}
}

// TestRetentionKeepsTheChain drops the text deltas of old turns, one of which lasted over midnight.
// The digests of the deltas stay, and the records of the turns are still compared.
func TestRetentionKeepsTheChain(t *testing.T) {
	t.Parallel()
	w := newStill(t)
	w.Days(t, 7, 6, 5, 4, 3)
	p := w.Past(t, w.replica, 20, 6, 4)
	w.extend(t)
	heads := []chain.Head{w.head(t)}
	w.isClean(t, chain.Verification{Heads: heads})
	w.Expire(t, p.Turns...)
	if done := sessiontest.Retain(t, w.replica); len(done.Partitions) == 0 {
		t.Fatal("no partition was dropped")
	}
	w.isClean(t, chain.Verification{Heads: heads}) // the links for the partitions are not made yet
	w.extend(t)
	w.isClean(t, chain.Verification{Heads: append(heads, w.head(t))})
	w.tamper(t, fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND ord = 5`, p.From.Session))
	if found := w.verify(t, chain.Verification{}); len(found) != 1 || found[0].Kind != chain.Removed || found[0].Ord != 5 {
		t.Errorf("%+v", found)
	}
}

// TestDroppedDeltasNeedALink removes text deltas like retention, but without a record of it.
func TestDroppedDeltasNeedALink(t *testing.T) {
	t.Parallel()
	w := newStill(t)
	w.Days(t, 7, 6, 5)
	w.Past(t, w.replica, 20, 6)
	w.extend(t)
	w.tamper(t, `DELETE FROM events WHERE delta`)
	if found := w.verify(t, chain.Verification{}); len(found) == 0 || found[0].Kind != chain.Removed {
		t.Errorf("%+v", found)
	}
}

// TestKeysVouchForEachOther rotates the master key. A verifier with only the first or only the last
// public key trusts all links, and one with another key none.
func TestKeysVouchForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	texts := []string{vault.GenerateKey(), vault.GenerateKey(), vault.GenerateKey()}
	for i, text := range texts {
		both := text
		if i > 0 {
			both += "\n" + texts[i-1]
		}
		w.chain = chain.New(w.Pool, parseKeys(t, both), chain.Options{})
		w.talk(t, w.replica)
		w.extend(t)
		w.keys = parseKeys(t, text)
		w.isClean(t, chain.Verification{})
	}
	w.isClean(t, chain.Verification{Keys: chain.PublicKeysOf(parseKeys(t, texts[0]))})
	if found := w.verify(t, chain.Verification{Keys: chain.PublicKeysOf(parseKeys(t, vault.GenerateKey()))}); len(found) != 3 {
		t.Errorf("%+v", found)
	}
}

// TestTakeoverKeepsTheChain lets another replica take over a turn in the middle, while the first one
// still tries to write.
func TestTakeoverKeepsTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.still(t, chain.New(w.Pool, w.keys, chain.Options{}))
	other.Start(t)
	lease, from := w.Begin(t, w.replica, "hello")
	w.write(t, w.replica, lease)
	w.extend(t)
	err := w.replica.Update(t.Context(), from.Session, func(tx *session.Tx) error {
		_, err := tx.ReleaseTurn(t.Context(), lease, event.AfterCrash)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.replica.Writer(lease).Append(t.Context(), event.ToolUse{Tool: "zombie"}); !errors.Is(err, eventlog.ErrLeaseLost) {
		t.Fatalf("the fenced writer: %v", err)
	}
	next := sessiontest.Claim(t, other, from.Session, lease.Turn)
	w.write(t, other, next)
	sessiontest.End(t, other, next)
	w.extend(t)
	w.isClean(t, chain.Verification{})
	w.isClean(t, chain.Verification{Session: &from.Session})
}

// TestReplicasMakeOneChain lets four replicas extend the chain while turns end.
func TestReplicasMakeOneChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ended := make(chan struct{})
	errs := make(chan error, 4)
	for range 4 {
		go func() {
			c := chain.New(w.Pool, w.keys, chain.Options{})
			for {
				if err := c.Extend(t.Context()); err != nil {
					errs <- err
					return
				}
				select {
				case <-ended:
					errs <- nil
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
	}
	for range 8 {
		w.talk(t, w.replica)
	}
	close(ended)
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	w.extend(t)
	w.isClean(t, chain.Verification{})
	if n := w.Count(t, `SELECT count(DISTINCT session_id) FROM chain_links`); n != 8 {
		t.Errorf("%d sessions have links", n)
	}
}

// TestWritersRunBesideAVerification verifies again and again while turns are written and covered, and
// while a session is erased.
func TestWritersRunBesideAVerification(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.talk(t, w.replica)
	w.extend(t)
	heads := []chain.Head{w.head(t)}
	ended := make(chan error, 1)
	go func() {
		for range 4 {
			w.talk(t, w.replica)
			if err := w.chain.Extend(t.Context()); err != nil {
				ended <- err
				return
			}
		}
		_, err := w.replica.EraseContent(t.Context(), first, "test")
		ended <- err
	}()
	for {
		w.isClean(t, chain.Verification{Heads: heads})
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			w.extend(t)
			w.isClean(t, chain.Verification{Heads: heads})
			return
		default:
		}
	}
}

// TestRetentionWaitsForAVerification checks that no partition is dropped between the snapshot of a
// verification and its end: its events would be missing without a link.
func TestRetentionWaitsForAVerification(t *testing.T) {
	t.Parallel()
	w := newStill(t)
	w.Days(t, 7, 6, 5)
	w.Past(t, w.replica, 20, 6)
	w.extend(t)
	tried := false
	w.isClean(t, chain.Verification{Progress: func(int64, int64) {
		_, err := w.Pool.Exec(t.Context(), `SET lock_timeout = '10ms'; SELECT events_drop(now(), now())`)
		if tried = true; !pgerr.IsContended(err) {
			t.Errorf("a partition was dropped: %v", err)
		}
	}})
	if !tried {
		t.Error("the verification has read no link")
	}
}

// TestDumpAndRestoreKeepTheChain verifies a copy of the database that pg_dump and psql have made.
func TestDumpAndRestoreKeepTheChain(t *testing.T) {
	t.Parallel()
	server := dbtest.NewServer(t)
	w := &world{World: sessiontest.NewOn(t, server.DSN()), keys: parseKeys(t, vault.GenerateKey())}
	w.chain = chain.New(w.Pool, w.keys, chain.Options{})
	w.replica = w.still(t, w.chain)
	w.replica.Start(t)
	id, _ := w.talk(t, w.replica)
	w.talk(t, w.replica)
	w.extend(t)
	copied := dbtest.Pool(t, server.Restore(server.Dump(w.DSN)))
	heads := []chain.Head{w.head(t)}
	for _, f := range verifyOn(t, copied, w.keys, chain.Verification{Heads: heads}) {
		t.Errorf("%s: %s", f.Kind, f.Text)
	}
	if _, err := copied.Exec(t.Context(), `SET session_replication_role = replica; DELETE FROM events WHERE session_id = '`+id.String()+
		`' AND ord = 13`); err != nil {
		t.Fatal(err)
	}
	if found := verifyOn(t, copied, w.keys, chain.Verification{Heads: heads}); len(found) != 1 || found[0].Kind != chain.Removed {
		t.Errorf("%+v", found)
	}
}

// TestLongSessionsHaveSeveralLinks covers a session that has more events than one link.
func TestLongSessionsHaveSeveralLinks(t *testing.T) {
	t.Parallel()
	w := newStill(t)
	w.Days(t, 5, 4)
	p := w.Past(t, w.replica, 4500, 5)
	w.extend(t)
	if n := w.Count(t, `SELECT count(*) FROM chain_links WHERE session_id = $1`, p.From.Session); n != 3 {
		t.Errorf("%d links", n)
	}
	w.isClean(t, chain.Verification{})
	if _, err := w.replica.EraseContent(t.Context(), p.From.Session, "test"); err != nil {
		t.Fatal(err)
	}
	w.extend(t)
	w.isClean(t, chain.Verification{})
	w.tamper(t, fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND ord = 4495`, p.From.Session))
	if found := w.verify(t, chain.Verification{}); len(found) != 1 || found[0].Ord != 4495 {
		t.Errorf("%+v", found)
	}
}

// TestOtherSessionsAreLeftOut verifies one session of two that were changed.
func TestOtherSessionsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := w.talk(t, w.replica)
	b, _ := w.talk(t, w.replica)
	w.extend(t)
	w.tamper(t, fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND ord = 8`, a))
	w.isClean(t, chain.Verification{Session: &b})
	other := uuid.Must(uuid.NewV7())
	w.isClean(t, chain.Verification{Workspace: &other})
	later := time.Now().Add(time.Minute)
	w.isClean(t, chain.Verification{Since: &later})
	for _, v := range []chain.Verification{{Session: &a}, {Workspace: &w.Workspace.ID}} {
		if found := w.verify(t, v); len(found) != 1 {
			t.Errorf("%+v", found)
		}
	}
}
