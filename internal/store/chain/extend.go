package chain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/replan"
)

// beginning is older than every event.
var beginning = time.Unix(0, 0)

// extension is one transaction that extends the chain.
type extension struct {
	s     *Store
	tx    pgx.Tx
	q     *db.Queries
	key   signingKey
	now   time.Time
	head  db.ChainHeadRow
	upto  time.Time
	mine  bool // no other transaction extends the chain
	more  bool // there is more to cover
	links []*link
	last  map[uuid.UUID]*link // the newest link of each session
}

func (s *Store) extendOnce(ctx context.Context) (more bool, err error) {
	var e *extension
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		e = &extension{s: s, tx: tx, q: db.New(tx), last: make(map[uuid.UUID]*link)}
		more, err = e.run(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("extend the chain: %w", err)
	}
	if e.mine && !more {
		s.covered.mark()
	}
	return more, nil
}

func (e *extension) run(ctx context.Context) (more bool, err error) {
	if e.mine, err = e.q.ChainLock(ctx); err != nil || !e.mine {
		return false, err
	}
	if e.now, err = e.q.ChainClock(ctx); err != nil {
		return false, err
	}
	if e.head, err = e.q.ChainHead(ctx); errors.Is(err, pgx.ErrNoRows) {
		e.head = db.ChainHeadRow{Upto: beginning}
	} else if err != nil {
		return false, err
	}
	notices, err := e.q.ChainNotices(ctx, batchNotices)
	if err != nil {
		return false, err
	}
	turns, err := e.q.ChainDueTurns(ctx, e.head.Upto, batchTurns)
	if err != nil {
		return false, err
	}
	if len(notices) == 0 && len(turns) == 0 {
		return false, nil
	}
	e.more = len(notices) == batchNotices || len(turns) == batchTurns
	e.upto = e.now.Add(-settled)
	if len(turns) == batchTurns { // those that follow ended later
		e.upto = turns[len(turns)-1].FinishedAt
	}
	if e.upto.Before(e.head.Upto) {
		e.upto = e.head.Upto
	}
	if e.key, err = publishKey(ctx, e.q, e.s.keys); err != nil {
		return false, err
	}
	if err := e.addLinks(ctx, notices, turns); err != nil {
		return false, err
	}
	return e.more, e.store(ctx, notices)
}

// addLinks makes the links of notices and turns.
func (e *extension) addLinks(ctx context.Context, notices []db.ChainNotice, turns []db.ChainDueTurnsRow) error {
	var order []uuid.UUID
	spans := make(map[uuid.UUID]*span)
	want := func(id uuid.UUID, since time.Time) *span {
		if spans[id] == nil {
			spans[id] = &span{session: id, kind: linkRows, since: since.Add(-skew)}
			order = append(order, id)
		}
		return spans[id]
	}
	for _, n := range notices {
		switch n.Kind {
		case "dropped":
			e.addLink(&link{kind: linkDropped, lastAt: e.now, detail: string(n.Detail)})
		case "erased":
			want(*n.SessionID, beginning).kind = linkErased
		default:
			want(*n.SessionID, beginning)
		}
	}
	for _, t := range turns {
		want(t.SessionID, t.CreatedAt)
	}
	heads, err := e.q.ChainSessionHeads(ctx, order)
	if err != nil {
		return err
	}
	for _, h := range heads {
		e.last[h.SessionID] = &link{number: h.Number, lastSeq: h.LastSeq, lastOrd: h.LastOrd, lastAt: h.LastAt, hash: h.Hash}
		if sp := spans[h.SessionID]; sp.kind == linkRows {
			sp.afterSeq, sp.afterOrd, sp.since = h.LastSeq, h.LastOrd, h.LastAt.Add(-skew)
		}
	}
	list := make([]*span, len(order))
	for i, id := range order {
		list[i] = spans[id]
		list[i].start()
	}
	if err := e.readSpans(ctx, list); err != nil {
		return err
	}
	for _, sp := range list {
		if err := e.addSpan(ctx, sp); err != nil {
			return err
		}
	}
	return nil
}

// addSpan makes the link of a span.
func (e *extension) addSpan(ctx context.Context, sp *span) error {
	entries := sp.entries.finish()
	if sp.entries.rows == 0 && sp.kind == linkRows {
		return nil // retention has dropped them before they were covered
	}
	l := &link{kind: sp.kind, session: sp.session, afterSeq: sp.afterSeq, afterOrd: sp.afterOrd, lastSeq: sp.entries.seq,
		lastOrd: sp.entries.ord, lastAt: sp.entries.newest,
		entries: entries, salt: sp.salt}
	if sp.kind == linkErased { // again, for a link that was made during the erasure
		if err := e.q.ChainForget(ctx, &sp.session); err != nil {
			return err
		}
	}
	if sp.entries.rows == linkRowLimit {
		e.more = true
		if err := e.q.ChainNotice(ctx, "late", &sp.session, nil); err != nil {
			return err
		}
	} else if last := e.last[sp.session]; sp.kind == linkErased && last != nil {
		l.lastSeq, l.lastOrd, l.lastAt = max(l.lastSeq, last.lastSeq), max(l.lastOrd, last.lastOrd), last.lastAt
	}
	e.addLink(l)
	return nil
}

func (e *extension) addLink(l *link) {
	l.number = e.head.Number + int64(len(e.links)) + 1
	l.upto, l.at = e.upto, e.now
	previous := e.head.Hash
	if n := len(e.links); n > 0 {
		previous = e.links[n-1].hash
	}
	var before []byte
	if last := e.last[l.session]; last != nil {
		before = last.hash
	}
	l.closeLink(previous, before, e.key)
	e.links = append(e.links, l)
	if l.session != uuid.Nil {
		e.last[l.session] = l
	}
}

func (e *extension) store(ctx context.Context, notices []db.ChainNotice) error {
	if len(e.links) > 0 {
		p := db.ChainExtendParams{Upto: e.upto, At: e.now, KeyID: e.key.id}
		for _, l := range e.links {
			p.Numbers, p.Kinds, p.Sessions = append(p.Numbers, l.number), append(p.Kinds, l.kind), append(p.Sessions, l.session)
			p.AfterSeqs, p.AfterOrds = append(p.AfterSeqs, l.afterSeq), append(p.AfterOrds, l.afterOrd)
			p.LastSeqs, p.LastOrds, p.LastAts = append(p.LastSeqs, l.lastSeq), append(p.LastOrds, l.lastOrd), append(p.LastAts, l.lastAt)
			p.Entries, p.Salts, p.Digests = append(p.Entries, l.entries), append(p.Salts, l.salt), append(p.Digests, l.digest)
			p.Details, p.Hashes, p.Signatures = append(p.Details, l.detail), append(p.Hashes, l.hash), append(p.Signatures, l.signature)
		}
		if err := e.q.ChainExtend(ctx, p); err != nil {
			return err
		}
	}
	if len(notices) == 0 {
		return nil
	}
	ids := make([]int64, len(notices))
	for i, n := range notices {
		ids[i] = n.ID
	}
	return e.q.ChainNoticesDelete(ctx, ids)
}

// span is the part of a session's log that the next link covers.
type span struct {
	session            uuid.UUID
	kind               string
	since              time.Time // no event of it is older
	afterSeq, afterOrd int64
	salt               []byte
	entries            *entryWriter
}

func (sp *span) start() {
	sp.salt = make([]byte, 16)
	_, _ = rand.Read(sp.salt) // never fails
	sp.entries = newEntryWriter(sp.salt, sp.afterSeq, sp.afterOrd)
}

// readSpans reads the events of spans and adds their digests. Its memory does not grow with them.
func (e *extension) readSpans(ctx context.Context, spans []*span) error {
	w := newWanted(len(spans))
	for _, sp := range spans {
		w.add(sp.session, sp.afterSeq, maxSeq, sp.since)
	}
	return w.read(ctx, e.tx, linkRowLimit, func(i int, r *row) { spans[i].entries.addRow(r) })
}
