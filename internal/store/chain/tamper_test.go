package chain_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/vault"
)

// talk is a session with one turn. Its events 1 to 13: message, open, started, four deltas, tool_use,
// tool_result, three deltas, done.
type talk struct{ session, turn uuid.UUID }

// tamperings are changes by the owner of the database, each with the kind and the number of the first
// finding. docs/guides/integrity.md has their names with the sentence that verify prints.
var tamperings = []struct {
	name  string
	do    func(w *world, t *testing.T, a, b talk) []string
	kind  string
	ord   int64 // 0: not an event
	heads bool  // only the anchored heads show it
}{
	{"changed content", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`UPDATE events SET data = '{"v":1,"tool":"read","ok":true,"output":"forged"}' WHERE session_id = '%s' AND ord = 9`, a.session)
	}, chain.Changed, 9, false},
	{"changed bytes, equal as JSON", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`UPDATE events SET data = (data::text || ' ')::json WHERE session_id = '%s' AND ord = 9`, a.session)
	}, chain.Changed, 9, false},
	{"changed text delta", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`UPDATE events SET data = '{"v":1,"text":"forged"}' WHERE session_id = '%s' AND ord = 6`, a.session)
	}, chain.Changed, 6, false},
	{"changed time", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`UPDATE events SET at = at + interval '1 microsecond' WHERE session_id = '%s' AND ord = 8`, a.session)
	}, chain.Changed, 8, false},
	{"changed kind", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`UPDATE events SET kind = 'usage' WHERE session_id = '%s' AND ord = 8`, a.session)
	}, chain.Changed, 8, false},
	{"another turn", func(_ *world, _ *testing.T, a, b talk) []string {
		return one(`UPDATE events SET turn_id = '%s' WHERE session_id = '%s' AND ord = 8`, b.turn, a.session)
	}, chain.Changed, 8, false},
	{"removed event", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`DELETE FROM events WHERE session_id = '%s' AND ord = 8`, a.session)
	}, chain.Removed, 8, false},
	{"removed text delta", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`DELETE FROM events WHERE session_id = '%s' AND ord = 5`, a.session)
	}, chain.Removed, 5, false},
	{"removed last event, counters corrected", func(w *world, t *testing.T, a, _ talk) []string {
		return append(one(`DELETE FROM events WHERE session_id = '%s' AND ord = 13`, a.session),
			fmt.Sprintf(`UPDATE sessions SET last_ord = 12, last_seq = %d WHERE id = '%s'`, w.seq(t, a.session, 12), a.session))
	}, chain.Removed, 13, false},
	{"removed turn", func(_ *world, _ *testing.T, a, _ talk) []string {
		return []string{fmt.Sprintf(`DELETE FROM events WHERE turn_id = '%s'`, a.turn),
			fmt.Sprintf(`DELETE FROM messages WHERE turn_id = '%s'`, a.turn),
			fmt.Sprintf(`DELETE FROM turns WHERE id = '%s'`, a.turn)}
	}, chain.Removed, 1, false},
	{"removed session with its links", func(_ *world, _ *testing.T, a, _ talk) []string {
		return append(removeSession(a.session), fmt.Sprintf(`DELETE FROM chain_links WHERE session_id = '%s'`, a.session))
	}, chain.Link, 0, false},
	{"inserted event", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(
			`INSERT INTO events SELECT seq - 1, session_id, at, delta, ord, turn_id, kind, data FROM events WHERE session_id = '%s' `+
				`AND ord = 8`, a.session)
	}, chain.Inserted, 8, false},
	{"inserted message at the end", func(_ *world, _ *testing.T, a, _ talk) []string {
		return one(`INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
			VALUES ('%s', '%s', now() - interval '1 hour', false, 14, 'message', '{"v":1,"text":"forged"}')`, a.session, uuid.Must(uuid.NewV7()))
	}, chain.Uncovered, 14, false},
	{"two events swapped", func(w *world, t *testing.T, a, _ talk) []string {
		x, y := w.seq(t, a.session, 8), w.seq(t, a.session, 9)
		return one(
			`UPDATE events SET seq = CASE seq WHEN %[1]d THEN %[2]d ELSE %[1]d END, ord = CASE ord WHEN 8 THEN 9 ELSE 8 END WHERE `+
				`session_id = '%[3]s' AND ord IN (8, 9)`,
			x, y, a.session)
	}, chain.Reordered, 8, false},
	{"event moved to another session", func(_ *world, _ *testing.T, a, b talk) []string {
		return one(`UPDATE events SET session_id = '%s' WHERE session_id = '%s' AND ord = 9`, b.session, a.session)
	}, chain.Removed, 9, false},
	{"two sessions swapped", func(_ *world, _ *testing.T, a, b talk) []string {
		return one(
			`UPDATE events SET session_id = CASE session_id WHEN '%[1]s'::uuid THEN '%[2]s'::uuid ELSE '%[1]s'::uuid END WHERE `+
				`session_id IN ('%[1]s', '%[2]s')`,
			a.session, b.session)
	}, chain.Removed, 1, false},
	{"changed digests", func(*world, *testing.T, talk, talk) []string {
		return []string{
			`UPDATE chain_links SET entries = overlay(entries placing '\x00' from 20) WHERE number = (SELECT max(number) FROM chain_links)`}
	}, chain.Link, 0, false},
	{"removed digests", func(*world, *testing.T, talk, talk) []string {
		return []string{`UPDATE chain_links SET entries = NULL, salt = NULL WHERE number = (SELECT max(number) FROM chain_links)`}
	}, chain.Link, 0, false},
	{"changed time of a link", func(*world, *testing.T, talk, talk) []string {
		return []string{`UPDATE chain_links SET at = at - interval '1 day' WHERE number = 1`}
	}, chain.Link, 0, false},
	{"event and link rewritten, hashes computed again", func(w *world, t *testing.T, a, _ talk) []string {
		w.tamper(t, fmt.Sprintf(`UPDATE events SET kind = 'usage' WHERE session_id = '%s' AND ord = 8`, a.session))
		if err := pgx.BeginFunc(t.Context(), w.Pool, func(tx pgx.Tx) error { return chain.RewriteLinks(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
		return nil
	}, chain.Link, 0, false},
	{"links made again with another key", func(w *world, t *testing.T, _, _ talk) []string {
		w.tamper(t, `DELETE FROM chain_links`, `DELETE FROM chain_keys`)
		if err := chain.New(w.Pool, w.others, chain.Options{}).Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		return nil
	}, chain.Link, 0, false},
	{"all links removed", func(*world, *testing.T, talk, talk) []string { return []string{`DELETE FROM chain_links`} }, chain.Link, 0, false},
	{"removed record of an erasure", func(*world, *testing.T, talk, talk) []string {
		return []string{`DELETE FROM erasures`}
	}, chain.Link, 0, false},
	{"erasure without a record", func(_ *world, _ *testing.T, a, _ talk) []string {
		return []string{fmt.Sprintf(`SELECT events_erase('%s', 1000000)`, a.session),
			fmt.Sprintf(`UPDATE chain_links SET entries = NULL, salt = NULL WHERE session_id = '%s'`, a.session),
			fmt.Sprintf(`INSERT INTO chain_notices (kind, session_id) VALUES ('erased', '%s')`, a.session)}
	}, chain.Link, 0, false},
	{"events removed with a forged notice of retention", func(_ *world, _ *testing.T, a, _ talk) []string {
		return append(one(`DELETE FROM events WHERE session_id = '%s' AND ord = 8`, a.session),
			`INSERT INTO chain_notices (kind, detail) VALUES ('dropped', json_build_object('partition', 'events_record_202501', `+
				`'deltas', false, 'before', clock_timestamp()))`)
	}, chain.Link, 0, false},
	{"event inserted before its link was made", func(w *world, t *testing.T, a, _ talk) []string {
		w.tamper(t, fmt.Sprintf(`INSERT INTO events (seq, session_id, at, delta, ord, turn_id, kind, data)
			SELECT nextval('events_seq_seq'), session_id, at, delta, 13, turn_id, kind, data FROM events WHERE session_id = '%s' AND ord = 1`, a.session),
			fmt.Sprintf(`INSERT INTO chain_notices (kind, session_id) VALUES ('late', '%s')`, a.session))
		w.extend(t)
		return nil
	}, chain.Inserted, 13, false},
	{"last session removed with its links", func(_ *world, _ *testing.T, _, b talk) []string {
		return append(removeSession(b.session), fmt.Sprintf(
			`DELETE FROM chain_links WHERE number >= (SELECT number FROM chain_links WHERE session_id = '%s')`, b.session))
	}, chain.Anchor, 0, true},
	{"an older copy restored", func(w *world, t *testing.T, _, _ talk) []string {
		w.restore(t, "older")
		return nil
	}, chain.Anchor, 0, true},
	{"all links removed, and made again by a server", func(w *world, t *testing.T, a, _ talk) []string {
		w.tamper(t, fmt.Sprintf(`UPDATE events SET kind = 'usage' WHERE session_id = '%s' AND ord = 8`, a.session), `DELETE FROM chain_links`)
		w.extend(t)
		return nil
	}, chain.Anchor, 0, true},
}

func one(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// TestTamperingIsFound changes the log and the chain in many ways, and verifies that the first event
// that was changed is named, in the sentence that the documentation has.
func TestTamperingIsFound(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/guides/integrity.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.others = parseKeys(t, vault.GenerateKey())
	erased, _ := w.talk(t, w.replica)
	w.extend(t)
	heads := []chain.Head{w.head(t)}
	w.save(t, "older")
	if _, err := w.replica.EraseContent(t.Context(), erased, "test"); err != nil {
		t.Fatal(err)
	}
	var a, b talk
	a.session, a.turn = w.talk(t, w.replica)
	b.session, b.turn = w.talk(t, w.replica)
	w.extend(t)
	heads = append(heads, w.head(t))
	w.Exec(t, `UPDATE turns SET finished_at = finished_at - interval '1 minute'`) // the chain covers them for certain
	w.save(t, "whole")
	w.isClean(t, chain.Verification{Heads: heads})
	for _, c := range tamperings {
		t.Run(c.name, func(t *testing.T) {
			w.tamper(t, c.do(w, t, a, b)...)
			if found := w.verify(t, chain.Verification{}); c.heads != (len(found) == 0) {
				t.Errorf("found without heads: %+v", found)
			}
			found := w.verify(t, chain.Verification{Heads: heads})
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			if f := found[0]; f.Kind != c.kind || f.Ord != c.ord {
				t.Errorf("%+v: %s", f, f.Text)
			}
			if row := fmt.Sprintf("| %s | `%s` |", c.name, generalize(found[0].Text)); !strings.Contains(string(page), row) {
				t.Errorf("docs/guides/integrity.md lacks\n%s", row)
			}
			w.restore(t, "whole")
		})
	}
	w.isClean(t, chain.Verification{Heads: heads})
	for _, change := range []string{"hash = sha256('x')", "signature = sha256('x') || sha256('y')", "upto = upto - interval '1 day'",
		"key_id = 'other'", "session_id = gen_random_uuid()"} {
		w.tamper(t, `UPDATE chain_links SET `+change+` WHERE number = 1`)
		if found := w.verify(t, chain.Verification{}); len(found) == 0 || found[0].Kind != chain.Link || found[0].Link != 1 {
			t.Errorf("%s: %+v", change, found)
		}
		w.restore(t, "whole")
	}
	forged := heads[0]
	forged.Signature = append([]byte{forged.Signature[0] ^ 1}, forged.Signature[1:]...)
	if found := w.verify(t, chain.Verification{Heads: []chain.Head{forged}}); len(found) != 1 || found[0].Kind != chain.Anchor {
		t.Errorf("with a forged head: %+v", found)
	}
}

var specific = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{4}-\d\d-\d\dT[0-9:.]+Z|the key [0-9A-Za-z_-]+|\d+`)

// generalize replaces numbers, ids and times of a sentence.
func generalize(text string) string {
	text, _, _ = strings.Cut(text, " Session ") // every finding of an event ends with it
	return specific.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "the key"):
			return "the key K"
		case strings.Contains(s, "T"):
			return "T"
		case strings.Contains(s, "-"):
			return "S"
		}
		return "N"
	})
}

// saved are the tables that save and restore copy, referenced ones first.
var saved = []string{"sessions", "turns", "messages", "events", "erasures", "chain_links", "chain_notices", "chain_keys"}

// save copies the tables. restore puts the copies back, as the owner of the database can.
func (w *world) save(t *testing.T, name string) {
	t.Helper()
	for _, table := range saved {
		w.Exec(t, fmt.Sprintf(`CREATE TABLE %s_%s AS TABLE %[2]s`, name, table))
	}
}

func (w *world) restore(t *testing.T, name string) {
	t.Helper()
	var all []string
	for _, table := range saved {
		all = append(all, fmt.Sprintf(`DELETE FROM %s`, table), fmt.Sprintf(`INSERT INTO %s SELECT * FROM %s_%[1]s`, table, name))
	}
	w.tamper(t, all...)
}

func removeSession(id uuid.UUID) []string {
	var all []string
	for _, table := range []string{"events", "messages", "turns"} {
		all = append(all, fmt.Sprintf(`DELETE FROM %s WHERE session_id = '%s'`, table, id))
	}
	return append(all, fmt.Sprintf(`DELETE FROM sessions WHERE id = '%s'`, id))
}
