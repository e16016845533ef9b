package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	Heads    int       `json:"heads"`              // that were compared, each once
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
		if _,
			err := tx.Exec(ctx,
			`SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`); err != nil {
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
		links, err := v.q.ChainPage(ctx, db.ChainPageParams{After: after, SessionID: v.Session, WorkspaceID: v.Workspace, Since: v.Since,
			N: pageLinks})
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
			if err := v.reportErasure(fmt.Sprintf("Link %d records an erasure of session %s", l.Number, l.SessionID), l.Number,
				*l.SessionID); err != nil {
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
		text := fmt.Sprintf("The links %d to %d were removed.", v.next, r.Number-1)
		if v.next == r.Number-1 {
			text = fmt.Sprintf("Link %d was removed.", v.next)
		}
		if err := wrong("%s", text); err != nil {
			return err
		}
	}
	v.next = r.Number + 1
	l := &link{number: r.Number, kind: r.Kind, afterSeq: r.AfterSeq, afterOrd: r.AfterOrd, lastSeq: r.LastSeq, lastOrd: r.LastOrd,
		lastAt: r.LastAt, digest: r.Digest,
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
