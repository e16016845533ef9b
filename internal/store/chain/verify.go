package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
)

// The kinds of findings.
const (
	Changed   = "changed"   // an event has other content, another time or another turn
	Removed   = "removed"   // an event is missing
	Inserted  = "inserted"  // an event was added
	Reordered = "reordered" // an event is in another place
	Link      = "link"      // a link was changed, removed or not signed by a trusted key
	Anchor    = "anchor"    // the chain differs from a head that was stored elsewhere
	Uncovered = "uncovered" // events that no link covers although their turn has ended
)

// Finding is a difference between the log and the chain.
type Finding struct {
	Kind    string     `json:"kind"`
	Link    int64      `json:"link,omitempty"`
	Session *uuid.UUID `json:"session_id,omitempty"`
	Seq     int64      `json:"seq,omitempty"`
	Ord     int64      `json:"ord,omitempty"`
	Text    string     `json:"text"`
}

// Verification is the input of Verify.
type Verification struct {
	Keys      PublicKeys // that may have signed; others are trusted if these vouch for them
	Workspace *uuid.UUID // only its sessions
	Session   *uuid.UUID // only this one
	Since     *time.Time // only links that were made later
	Heads     []Head     // stored outside of the database
	Found     func(Finding) error
	Progress  func(done, total int64) // called after each page
}

func (v Verification) isWhole() bool { return v.Workspace == nil && v.Session == nil && v.Since == nil }

// Summary is the result of Verify.
type Summary struct {
	Links    int64     `json:"links"`
	Events   int64     `json:"events"`             // whose digests were compared
	Erased   int64     `json:"erased"`             // links whose events were erased
	Dropped  int64     `json:"dropped"`            // events that retention has dropped
	Heads    int       `json:"heads"`              // that were compared
	Findings int       `json:"findings"`           // differences
	Upto     time.Time `json:"covers_turns_until"` // later turns have no link yet
}

const (
	pageLinks = 200
	pageRows  = 20_000
)

// verifier is one run of Verify, in one snapshot of the database.
type verifier struct {
	Verification
	tx      pgx.Tx
	q       *db.Queries
	sum     Summary
	pending map[uuid.UUID]bool // sessions that were erased since their newest link
	dropped [2]time.Time       // events that were older are gone: records, deltas
	next    int64              // number of the next link

	published bool // the chain has begun
}

// Verify compares the log with the chain and reports each difference. It reads one snapshot, in
// pages. The error is one of reading, or of Found.
func (s *Store) Verify(ctx context.Context, v Verification) (Summary, error) {
	r := &verifier{Verification: v, pending: make(map[uuid.UUID]bool), next: 1}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		r.tx, r.q = tx, db.New(tx)
		// Retention waits: the snapshot does not cover a partition that is dropped meanwhile.
		if _, err := tx.Exec(ctx, `LOCK TABLE events IN ACCESS SHARE MODE`); err != nil {
			return err
		}
		// Of a large log, each page and the search for uncovered events may take long.
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`); err != nil {
			return err
		}
		return r.run(ctx)
	})
	if err != nil {
		return r.sum, fmt.Errorf("verify the log: %w", err)
	}
	return r.sum, nil
}

func (v *verifier) run(ctx context.Context) error {
	if err := v.prepare(ctx); err != nil {
		return err
	}
	total, err := v.q.ChainCount(ctx)
	if err != nil {
		return err
	}
	if total == 0 && v.published {
		if err := v.report(Finding{Kind: Link, Text: "All links were removed: the database has a public key of the chain."}); err != nil {
			return err
		}
	}
	for after := int64(0); ; {
		links, err := v.q.ChainPage(ctx, db.ChainPageParams{After: after, SessionID: v.Session, WorkspaceID: v.Workspace, Since: v.Since, N: pageLinks})
		if err != nil {
			return err
		}
		if len(links) == 0 {
			break
		}
		after = links[len(links)-1].Number
		if err := v.verifyPage(ctx, links); err != nil {
			return err
		}
		v.sum.Links += int64(len(links))
		if v.Progress != nil {
			v.Progress(v.sum.Links, total)
		}
	}
	if err := v.findUncovered(ctx); err != nil {
		return err
	}
	return v.compareHeads(ctx)
}

// prepare reads the keys, and what the server has removed.
func (v *verifier) prepare(ctx context.Context) error {
	stored, err := v.q.ChainKeys(ctx)
	if err != nil {
		return err
	}
	v.Keys, v.published = v.Keys.widen(stored), len(stored) > 0
	pending, err := v.q.ChainPending(ctx)
	if err != nil {
		return err
	}
	for _, n := range pending {
		if !n.Forged {
			v.pending[n.SessionID] = true
			continue
		}
		if err := v.reportErasure(fmt.Sprintf("A notice records an erasure of session %s", n.SessionID), 0, n.SessionID); err != nil {
			return err
		}
	}
	if err := v.readDrops(ctx); err != nil {
		return err
	}
	head, err := v.q.ChainHead(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	v.sum.Upto = head.Upto.UTC()
	return err
}

// readDrops reads what retention has dropped. The newest drop of each kind has left nothing older.
func (v *verifier) readDrops(ctx context.Context) error {
	drops, err := v.q.ChainDrops(ctx)
	if err != nil {
		return err
	}
	var newest [2]db.ChainDropsRow
	for _, row := range drops {
		var d drop
		if err := json.Unmarshal(row.Detail, &d); err != nil {
			return err
		}
		i := 0
		if d.Deltas {
			i = 1
		}
		if d.Before.After(v.dropped[i]) {
			v.dropped[i], newest[i] = d.Before, row
		}
	}
	for i, row := range newest {
		if v.dropped[i].IsZero() {
			continue
		}
		if err := v.verifyDrop(ctx, i == 1, v.dropped[i], row); err != nil {
			return err
		}
	}
	return nil
}

// verifyDrop reports a drop of partitions that the log contradicts.
func (v *verifier) verifyDrop(ctx context.Context, deltas bool, before time.Time, row db.ChainDropsRow) error {
	what := "events"
	if deltas {
		what = "text deltas"
	}
	text := fmt.Sprintf("Link %d records that retention has dropped all %s before %s", row.Number, what, before.UTC().Format(time.RFC3339))
	if row.Number == 0 {
		text = fmt.Sprintf("A notice records that retention has dropped all %s before %s", what, before.UTC().Format(time.RFC3339))
	}
	if before.After(row.At) {
		return v.report(Finding{Kind: Link, Link: row.Number, Text: text + ", a time after the drop. It was forged."})
	}
	old, err := v.q.ChainOlder(ctx, deltas, before)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return v.report(Finding{Kind: Link, Link: row.Number, Session: &old.SessionID, Seq: old.Seq, Text: fmt.Sprintf("%s, and event %d is older. It was forged.", text, old.Seq)})
}

// reportErasure reports an erasure that its session contradicts.
func (v *verifier) reportErasure(what string, link int64, session uuid.UUID) error {
	return v.report(Finding{Kind: Link, Link: link, Session: &session, Text: what + ", and the table erasures does not have it. It was forged, or the row was removed."})
}

// wasDropped reports whether retention has dropped the events of a time.
func (v *verifier) wasDropped(deltas bool, at time.Time) bool {
	if deltas {
		return at.Before(v.dropped[1])
	}
	return at.Before(v.dropped[0])
}

func (v *verifier) report(f Finding) error {
	v.sum.Findings++
	return v.Found(f)
}

// verifyPage verifies links, and compares their events some thousand at a time.
func (v *verifier) verifyPage(ctx context.Context, links []db.ChainPageRow) error {
	var covered []db.ChainPageRow
	rows := int64(0)
	for _, l := range links {
		if err := v.verifyLink(l); err != nil {
			return err
		}
		if l.Forged {
			if err := v.reportErasure(fmt.Sprintf("Link %d records an erasure of session %s", l.Number, l.SessionID), l.Number, *l.SessionID); err != nil {
				return err
			}
		}
		switch {
		case l.SessionID == nil, v.pending[*l.SessionID]:
			continue
		case l.ErasedBy > 0:
			v.sum.Erased++
			continue
		case l.Entries == nil:
			if err := v.report(Finding{Kind: Link, Link: l.Number, Session: l.SessionID, Text: fmt.Sprintf(
				"The digests of link %d are missing, and no erasure of session %s is recorded.", l.Number, l.SessionID)}); err != nil {
				return err
			}
			continue
		}
		covered = append(covered, l)
		if rows += l.LastOrd - l.AfterOrd; rows >= pageRows {
			if err := v.compareEvents(ctx, covered); err != nil {
				return err
			}
			covered, rows = covered[:0], 0
		}
	}
	return v.compareEvents(ctx, covered)
}

// verifyLink verifies one link and its place in the chain.
func (v *verifier) verifyLink(r db.ChainPageRow) error {
	wrong := func(format string, args ...any) error {
		return v.report(Finding{Kind: Link, Link: r.Number, Session: r.SessionID, Text: fmt.Sprintf(format, args...)})
	}
	if v.isWhole() && r.Number != v.next {
		if err := wrong("The links %d to %d were removed.", v.next, r.Number-1); err != nil {
			return err
		}
	}
	v.next = r.Number + 1
	l := &link{number: r.Number, kind: r.Kind, afterSeq: r.AfterSeq, afterOrd: r.AfterOrd, lastSeq: r.LastSeq, lastOrd: r.LastOrd, lastAt: r.LastAt, digest: r.Digest,
		detail: string(r.Detail), upto: r.Upto, at: r.At, key: r.KeyID}
	if r.SessionID != nil {
		l.session = *r.SessionID
	}
	sum := sha256.Sum256(r.Entries)
	switch {
	case r.Kind != linkDropped && r.Entries != nil && !bytes.Equal(sum[:], r.Digest):
		return wrong("The digests of link %d were changed.", r.Number)
	case r.Previous == nil && r.Number > 1:
		return nil // reported with the gap
	case !bytes.Equal(l.computeHash(r.Previous, r.Before), r.Hash):
		return wrong("Link %d was changed, or a link before it.", r.Number)
	case !v.Keys.verifyHead(r.KeyID, r.Number, r.Hash, r.Signature):
		return wrong("Link %d was not signed by a trusted key. It names the key %s.", r.Number, r.KeyID)
	case r.Kind == linkRows && r.AfterSeq != r.BeforeSeq:
		return wrong("Link %d does not continue the link of session %s before it.", r.Number, r.SessionID)
	}
	return nil
}

// compareEvents compares the events of links with their digests.
func (v *verifier) compareEvents(ctx context.Context, links []db.ChainPageRow) error {
	if len(links) == 0 {
		return nil
	}
	w, found := newWanted(len(links)), make([][]place, len(links))
	for _, l := range links {
		w.add(*l.SessionID, l.AfterSeq, l.LastSeq, beginning)
	}
	err := w.read(ctx, v.tx, maxSeq, func(i int, r *row) {
		found[i] = append(found[i], place{r.seq, r.ord, r.at, r.delta, r.kind, r.digestOf(links[i].Salt)})
	})
	if err != nil {
		return err
	}
	for i, l := range links {
		v.sum.Events += int64(len(found[i]))
		if err := v.compareLink(ctx, l, found[i]); err != nil {
			return err
		}
	}
	return nil
}

// compareHeads compares the chain with heads that were stored elsewhere.
func (v *verifier) compareHeads(ctx context.Context) error {
	for start := 0; start < len(v.Heads); start += pageLinks {
		heads := v.Heads[start:min(start+pageLinks, len(v.Heads))]
		numbers := make([]int64, len(heads))
		for i, h := range heads {
			numbers[i] = h.Number
		}
		rows, err := v.q.ChainHashes(ctx, numbers)
		if err != nil {
			return err
		}
		stored := make(map[int64][]byte, len(rows))
		for _, r := range rows {
			stored[r.Number] = r.Hash
		}
		for _, h := range heads {
			if err := v.compareHead(h, stored[h.Number]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) compareHead(h Head, stored []byte) error {
	v.sum.Heads++
	text := ""
	switch {
	case !v.Keys.verifyHead(h.Key, h.Number, h.Hash, h.Signature):
		text = fmt.Sprintf("The anchored head of link %d was not signed by a trusted key. It names the key %s.", h.Number, h.Key)
	case stored == nil:
		text = fmt.Sprintf("Link %d was anchored on %s, and the database does not have it. The end of the log was removed, or the database was restored from an older backup.",
			h.Number, h.At.UTC().Format(time.RFC3339))
	case !bytes.Equal(stored, h.Hash):
		text = fmt.Sprintf("Link %d differs from the head that was anchored on %s. The log was rewritten before that link.", h.Number, h.At.UTC().Format(time.RFC3339))
	default:
		return nil
	}
	return v.report(Finding{Kind: Anchor, Link: h.Number, Text: text})
}

// maxUncovered is how many sessions with uncovered events are reported.
const maxUncovered = 20

// uncovered finds the newest events of sessions that the chain should cover and does not. Turns that
// have not ended, or ended after the newest link, are left out.
const uncovered = `
WITH tops AS (
    SELECT e.session_id, max(e.seq) AS seq FROM events e
    WHERE e.at < $1 AND ($2::uuid IS NULL OR e.session_id = $2) AND ($3::uuid IS NULL OR e.session_id IN (SELECT id FROM sessions WHERE workspace_id = $3))
    GROUP BY e.session_id
)
SELECT e.session_id, e.seq, e.ord, e.kind
FROM tops t
LEFT JOIN LATERAL (SELECT c.last_seq FROM chain_links c WHERE c.session_id = t.session_id ORDER BY c.number DESC LIMIT 1) l ON true
CROSS JOIN LATERAL (
    SELECT * FROM events n WHERE n.session_id = t.session_id AND n.seq > coalesce(l.last_seq, 0) AND n.at < $1
      AND NOT EXISTS (SELECT FROM turns o WHERE o.id = n.turn_id AND o.session_id = n.session_id AND (o.finished_at IS NULL OR o.finished_at >= $1))
    ORDER BY n.seq LIMIT 1
) e
WHERE t.seq > coalesce(l.last_seq, 0) AND NOT EXISTS (SELECT FROM chain_notices p WHERE p.session_id = t.session_id)
ORDER BY e.seq LIMIT $4`

// findUncovered reports events after the last link of their session.
func (v *verifier) findUncovered(ctx context.Context) error {
	if v.Since != nil {
		return nil
	}
	rows, err := v.tx.Query(ctx, uncovered, v.sum.Upto, v.Session, v.Workspace, maxUncovered)
	if err != nil {
		return err
	}
	var found []Finding
	var session uuid.UUID
	var seq, ord int64
	var kind string
	_, err = pgx.ForEachRow(rows, []any{&session, &seq, &ord, &kind}, func() error {
		id := session
		found = append(found, Finding{Kind: Uncovered, Session: &id, Seq: seq, Ord: ord, Text: fmt.Sprintf(
			"Event %d (%s) of session %s has no link, and the chain covers all turns that ended before %s. It was inserted, or its link was removed.",
			seq, kind, session, v.sum.Upto.Format(time.RFC3339))})
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := v.report(f); err != nil {
			return err
		}
	}
	return nil
}
