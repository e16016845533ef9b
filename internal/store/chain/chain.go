// Package chain makes changes of the log visible that the server has not made. It owns the tables
// chain_links, chain_notices and chain_keys.
//
// A link has the digests of events of one session, follows the link before it by a hash, and is
// signed with a key that only the server has. It promises: Verify names the first event that was
// changed, removed, inserted or reordered after its link was made; retention, erasure, another
// master key and another replica do not make it report anything. It never writes an event, and no
// turn waits for it.
package chain

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/vault"
)

const (
	// settled is a safe upper limit for the time between the end of a turn on PostgreSQL's clock and
	// its commit.
	settled = 10 * time.Second
	// skew is how far the clock of PostgreSQL may have been set back.
	skew = time.Hour

	batchTurns   = 256  // turns in one transaction
	batchNotices = 64   // notices in one transaction
	linkRowLimit = 2000 // events that one link covers

	// idleBeats is how many beats without new events pass between two looks for notices.
	idleBeats = 10
)

// Options configure a Store. The zero value works.
type Options struct {
	Log   *slog.Logger
	Pulse *pulse.Pulse // nil: Run makes its own
	Heads []HeadStore  // in which Run stores the head of the chain
}

// Store extends and verifies the chain.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
	keys *vault.Keyring
	opt  Options
}

// New returns a store. Without keys, nil, it can only record notices, and verify with given keys.
func New(pool *pgxpool.Pool, keys *vault.Keyring, opt Options) *Store {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Pulse == nil {
		opt.Pulse = pulse.New(pool)
	}
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), keys: keys, opt: opt}
}

// Run extends the chain once a second while events are written, until ctx ends. Every replica runs
// it; a transaction that finds another one at work does nothing.
func (s *Store) Run(ctx context.Context) error {
	trouble := outage.New(s.opt.Log, "extend the chain of the log")
	var wg sync.WaitGroup
	defer wg.Wait()
	grown := make([]chan struct{}, len(s.opt.Heads))
	for i, a := range s.opt.Heads {
		grown[i] = make(chan struct{}, 1)
		wg.Go(func() { s.feedAnchor(ctx, a, grown[i]) })
	}
	beats := 0
	for work := range s.opt.Pulse.Beats(ctx) {
		beats++
		if !work.Written && beats%idleBeats != 1 {
			continue
		}
		trouble.Note(ctx, s.Extend(ctx))
		for _, c := range grown {
			select {
			case c <- struct{}{}:
			default: // it has not read the beat before
			}
		}
	}
	return nil
}

// Extend covers all turns that have ended, and all notices.
func (s *Store) Extend(ctx context.Context) error {
	for {
		more, err := s.extendOnce(ctx)
		if err != nil || !more {
			return err
		}
	}
}

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
	more  bool // there is more to cover
	links []*link
	last  map[uuid.UUID]*link // the newest link of each session
}

func (s *Store) extendOnce(ctx context.Context) (more bool, err error) {
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		e := &extension{s: s, tx: tx, q: db.New(tx), last: make(map[uuid.UUID]*link)}
		more, err = e.run(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("extend the chain: %w", err)
	}
	return more, nil
}

func (e *extension) run(ctx context.Context) (more bool, err error) {
	if mine, err := e.q.ChainLock(ctx); err != nil || !mine {
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
	l := &link{kind: sp.kind, session: sp.session, afterSeq: sp.afterSeq, afterOrd: sp.afterOrd, lastSeq: sp.entries.seq, lastOrd: sp.entries.ord, lastAt: sp.entries.newest,
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

// readRows reads events of several sessions. A digest needs the bytes of data, so they are read as
// text.
const readRows = `
SELECT w.i, e.session_id, e.turn_id, e.seq, e.ord, e.at, e.delta, e.kind, e.data::text
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY AS w (id, after, last, since, i)
CROSS JOIN LATERAL (
    SELECT * FROM events WHERE session_id = w.id AND seq > w.after AND seq <= w.last AND at >= w.since ORDER BY seq LIMIT $5
) e`

// readSpans reads the events of spans and adds their digests. Its memory does not grow with them.
func (e *extension) readSpans(ctx context.Context, spans []*span) error {
	w := newWanted(len(spans))
	for _, sp := range spans {
		w.add(sp.session, sp.afterSeq, maxSeq, sp.since)
	}
	return w.read(ctx, e.tx, linkRowLimit, func(i int, r *row) { spans[i].entries.addRow(r) })
}

const maxSeq = 1<<63 - 1

// wanted are the arguments of readRows.
type wanted struct {
	ids           []uuid.UUID
	afters, lasts []int64
	sinces        []time.Time
}

func newWanted(n int) *wanted {
	return &wanted{make([]uuid.UUID, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]time.Time, 0, n)}
}

func (w *wanted) add(id uuid.UUID, after, last int64, since time.Time) {
	w.ids, w.afters, w.lasts, w.sinces = append(w.ids, id), append(w.afters, after), append(w.lasts, last), append(w.sinces, since)
}

// querier is a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// read calls add for each event, with the place of its session among those wanted.
func (w *wanted) read(ctx context.Context, on querier, limit int, add func(i int, r *row)) error {
	rows, err := on.Query(ctx, readRows, w.ids, w.afters, w.lasts, w.sinces, limit)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var r row
	var i int64
	_, err = pgx.ForEachRow(rows, []any{&i, &r.session, &r.turn, &r.seq, &r.ord, &r.at, &r.delta, &r.kind, &r.data}, func() error {
		add(int(i)-1, &r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return nil
}

// Erase removes the digests of a session that is erased, in its transaction. The next link covers
// the rows that remain.
func (s *Store) Erase(ctx context.Context, tx pgx.Tx, _, session uuid.UUID) error {
	q := db.New(tx)
	if err := q.ChainForget(ctx, &session); err != nil {
		return fmt.Errorf("erase digests: %w", err)
	}
	if err := q.ChainNotice(ctx, "erased", &session, nil); err != nil {
		return fmt.Errorf("note an erasure for the chain: %w", err)
	}
	return nil
}

// NoteLate records, in its transaction, that a session has an event after the end of its turn.
func (s *Store) NoteLate(ctx context.Context, tx pgx.Tx, _, session uuid.UUID) error {
	if err := db.New(tx).ChainNotice(ctx, "late", &session, nil); err != nil {
		return fmt.Errorf("note an event for the chain: %w", err)
	}
	return nil
}

// drop is the detail of a link for a dropped partition.
type drop struct {
	Partition string    `json:"partition"`
	Deltas    bool      `json:"deltas"`
	Before    time.Time `json:"before"` // its events were older
}

// NoteDrop records, in its transaction, that retention drops a partition of the log.
func (s *Store) NoteDrop(ctx context.Context, tx pgx.Tx, partition string, deltas bool, before time.Time) error {
	detail, err := json.Marshal(drop{partition, deltas, before.UTC()})
	if err != nil {
		return err
	}
	if err := db.New(tx).ChainNotice(ctx, "dropped", nil, detail); err != nil {
		return fmt.Errorf("note a dropped partition for the chain: %w", err)
	}
	return nil
}
