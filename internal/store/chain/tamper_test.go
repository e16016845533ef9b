package chain_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/chain"
)

// TestTamperingIsFound changes the log in ten ways, each in a database of its own, and verifies that
// the first event that was changed is named.
func TestTamperingIsFound(t *testing.T) {
	t.Parallel()
	// Events 1 to 13 of a talk: message, open, started, four deltas, tool_use, tool_result, three
	// deltas, done.
	type talk struct{ session, turn uuid.UUID }
	for name, c := range map[string]struct {
		tamper func(w *world, t *testing.T, a, b talk) []string
		kind   string
		ord    int64 // of the first finding; 0: not an event
		heads  bool  // the finding needs the anchored heads
	}{
		"changed data": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`UPDATE events SET data = '{"v":1,"tool":"read","ok":true,"output":"forged"}' WHERE session_id = '%s' AND ord = 9`, a.session)}
		}, chain.Changed, 9, false},
		"changed text": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`UPDATE events SET data = '{"v":1,"text":"forged"}' WHERE session_id = '%s' AND ord = 6`, a.session)}
		}, chain.Changed, 6, false},
		"changed time": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`UPDATE events SET at = at + interval '1 microsecond' WHERE session_id = '%s' AND ord = 8`, a.session)}
		}, chain.Changed, 8, false},
		"removed row": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND ord = 8`, a.session)}
		}, chain.Removed, 8, false},
		"removed text": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND ord = 5`, a.session)}
		}, chain.Removed, 5, false},
		"removed last row": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`DELETE FROM events WHERE session_id = '%s' AND ord = 13`, a.session),
				fmt.Sprintf(`UPDATE sessions SET last_ord = 12, last_seq = %d WHERE id = '%s'`, w.seq(t, a.session, 12), a.session)}
		}, chain.Removed, 13, false},
		"inserted row": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`INSERT INTO events SELECT seq - 1, session_id, at, delta, ord, turn_id, kind, data FROM events WHERE session_id = '%s' AND ord = 8`, a.session)}
		}, chain.Inserted, 8, false},
		"reordered rows": {func(w *world, t *testing.T, a, _ talk) []string {
			x, y := w.seq(t, a.session, 8), w.seq(t, a.session, 9)
			return []string{fmt.Sprintf(`UPDATE events SET seq = CASE seq WHEN %[1]d THEN %[2]d ELSE %[1]d END, ord = CASE ord WHEN 8 THEN 9 ELSE 8 END WHERE session_id = '%[3]s' AND ord IN (8, 9)`,
				x, y, a.session)}
		}, chain.Reordered, 8, false},
		"swapped sessions": {func(w *world, t *testing.T, a, b talk) []string {
			return []string{fmt.Sprintf(`UPDATE events SET session_id = CASE session_id WHEN '%s'::uuid THEN '%s'::uuid ELSE '%[1]s'::uuid END WHERE session_id IN ('%[1]s', '%[2]s')`,
				a.session, b.session)}
		}, chain.Removed, 1, false},
		"whole turn removed": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`DELETE FROM events WHERE turn_id = '%s'`, a.turn), fmt.Sprintf(`DELETE FROM messages WHERE turn_id = '%s'`, a.turn),
				fmt.Sprintf(`DELETE FROM turns WHERE id = '%s'`, a.turn)}
		}, chain.Removed, 1, false},
		"whole session removed": {func(w *world, t *testing.T, a, _ talk) []string {
			return append(removeSession(a.session), fmt.Sprintf(`DELETE FROM chain_links WHERE session_id = '%s'`, a.session))
		}, chain.Link, 0, false},
		"inserted turn": {func(w *world, t *testing.T, a, _ talk) []string {
			return []string{fmt.Sprintf(`INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
				VALUES ('%s', '%s', now() - interval '1 hour', false, 14, 'message', '{"v":1,"text":"forged"}')`, a.session, uuid.Must(uuid.NewV7()))}
		}, chain.Uncovered, 14, false},
		"newest session removed": {func(w *world, t *testing.T, _, b talk) []string {
			return append(removeSession(b.session), fmt.Sprintf(`DELETE FROM chain_links WHERE session_id = '%s'`, b.session))
		}, chain.Anchor, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var a, b talk
			a.session, a.turn = w.talk(t, w.replica)
			b.session, b.turn = w.talk(t, w.replica)
			w.extend(t)
			heads := []chain.Head{w.head(t)}
			w.Exec(t, `UPDATE turns SET finished_at = finished_at - interval '1 minute'`) // the chain covers them for certain
			w.talk(t, w.replica)
			w.extend(t)
			if c.heads {
				w.tamper(t, `DELETE FROM chain_links WHERE number > 2`)
			}
			w.isCleanBut(t, c.heads, heads)
			w.tamper(t, c.tamper(w, t, a, b)...)
			if found := w.verify(t, chain.Verification{}); c.heads && len(found) > 0 {
				t.Errorf("found without heads: %+v", found)
			}
			found := w.verify(t, chain.Verification{Heads: heads})
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			if f := found[0]; f.Kind != c.kind || f.Ord != c.ord || f.Text == "" {
				t.Errorf("%+v: %s", f, f.Text)
			}
		})
	}
}

// isCleanBut checks that a verification finds nothing, unless links were removed for the test.
func (w *world) isCleanBut(t *testing.T, removed bool, heads []chain.Head) {
	t.Helper()
	if !removed {
		w.isClean(t, chain.Verification{Heads: heads})
	}
}

func removeSession(id uuid.UUID) []string {
	var all []string
	for _, table := range []string{"events", "messages", "turns"} {
		all = append(all, fmt.Sprintf(`DELETE FROM %s WHERE session_id = '%s'`, table, id))
	}
	return append(all, fmt.Sprintf(`DELETE FROM sessions WHERE id = '%s'`, id))
}

// TestRewrittenHistoryDiffersFromItsHeads lets the owner of the database, who has the server's key
// too, rewrite the log and make its chain again. Only heads that were stored elsewhere show it.
func TestRewrittenHistoryDiffersFromItsHeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.talk(t, w.replica)
	w.talk(t, w.replica)
	w.extend(t)
	heads := []chain.Head{w.head(t)}
	w.isClean(t, chain.Verification{Heads: heads})
	w.tamper(t, fmt.Sprintf(`UPDATE events SET data = '{"v":1,"tool":"read","ok":true,"output":"forged"}' WHERE session_id = '%s' AND ord = 9`, id), `DELETE FROM chain_links`)
	w.extend(t)
	w.isClean(t, chain.Verification{})
	if found := w.verify(t, chain.Verification{Heads: heads}); len(found) != 1 || found[0].Kind != chain.Anchor || found[0].Link != 2 {
		t.Errorf("%+v", found)
	}
}

// TestForgedLinksAreFound rewrites the chain with a key of the owner's own, and changes links.
func TestForgedLinksAreFound(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"hash":      `UPDATE chain_links SET hash = sha256('x') WHERE number = 1`,
		"signature": `UPDATE chain_links SET signature = sha256('x') || sha256('y') WHERE number = 1`,
		"time":      `UPDATE chain_links SET at = at - interval '1 day' WHERE number = 1`,
		"upto":      `UPDATE chain_links SET upto = upto - interval '1 day' WHERE number = 1`,
		"digests":   `UPDATE chain_links SET entries = overlay(entries placing '\x00' from 20) WHERE number = 1`,
		"removed":   `UPDATE chain_links SET entries = NULL, salt = NULL WHERE number = 1`,
		"key":       `UPDATE chain_links SET key_id = 'other' WHERE number = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.talk(t, w.replica)
			w.extend(t)
			w.isClean(t, chain.Verification{})
			w.tamper(t, statement)
			if found := w.verify(t, chain.Verification{}); len(found) == 0 || found[0].Kind != chain.Link || found[0].Link != 1 {
				t.Errorf("%+v", found)
			}
		})
	}
}
