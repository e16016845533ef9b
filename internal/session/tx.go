package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// Tx is a change of one session, made under its lock. Inside the closure of Update
// there is only the Tx: rows, events and jobs written through it come into being
// together or not at all.
type Tx struct {
	pgx.Tx             // for what must commit with it, such as jobs
	Session db.Session // the locked row, as it was

	s    *Store
	q    *db.Queries
	seq  int64
	ord  int64
	news []event.Event

	committed []func()
}

// OnCommit has fn called once the change is committed, and never if it is not.
func (tx *Tx) OnCommit(fn func()) { tx.committed = append(tx.committed, fn) }

// ErrUnknownOutcome means that the answer to a commit was lost: the change may have been made.
var ErrUnknownOutcome = errors.New("the outcome of the commit is unknown")

// Ref says which session a message belongs to: an explicit id, a caller's, or a
// new one.
type Ref struct {
	Workspace uuid.UUID
	ID        uuid.UUID // uuid.Nil for none; takes precedence
	CallerID  string    // "" for none
}

// Update locks a session, runs fn and commits. Readers are woken after the commit.
func (s *Store) Update(ctx context.Context, id uuid.UUID, fn func(*Tx) error) error {
	return s.update(ctx, func(q *db.Queries) (db.Session, error) { return lock(ctx, q, id) }, fn)
}

// Open is Update for the session that a message belongs to; where there is none
// yet, it is made.
func (s *Store) Open(ctx context.Context, ref Ref, fn func(*Tx) error) error {
	return s.update(ctx, func(q *db.Queries) (db.Session, error) { return ref.lock(ctx, q) }, fn)
}

// lock takes the lock of the session. A caller's may have been erased or forgotten by
// whoever had the lock: then the caller has another one, or none.
func (r Ref) lock(ctx context.Context, q *db.Queries) (db.Session, error) {
	for {
		id, err := r.resolve(ctx, q)
		if err != nil {
			return db.Session{}, fmt.Errorf("find session: %w", err)
		}
		row, err := lock(ctx, q, id)
		if r.ID == uuid.Nil && (fault.From(err) != nil || row.ErasedAt != nil) {
			continue
		}
		return row, err
	}
}

func lock(ctx context.Context, q *db.Queries, id uuid.UUID) (db.Session, error) {
	row, err := q.SessionLock(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, NotFound(id)
	}
	if err != nil {
		return row, fmt.Errorf("lock session: %w", err)
	}
	return row, nil
}

// resolve finds or makes the session. Of many first calls with one caller id the
// unique index lets one make it; the others wait for that one and find it.
func (r Ref) resolve(ctx context.Context, q *db.Queries) (uuid.UUID, error) {
	if r.ID != uuid.Nil {
		found, err := q.SessionExists(ctx, r.Workspace, r.ID)
		if err == nil && !found {
			err = NotFound(r.ID)
		}
		return r.ID, err
	}
	var caller *string
	if r.CallerID != "" {
		caller = &r.CallerID
		id, err := q.SessionByCaller(ctx, r.Workspace, r.CallerID)
		if !errors.Is(err, pgx.ErrNoRows) {
			return id, err
		}
	}
	id, err := q.SessionInsert(ctx, uuid.Must(uuid.NewV7()), r.Workspace, caller, "")
	if errors.Is(err, pgx.ErrNoRows) {
		return q.SessionByCaller(ctx, r.Workspace, r.CallerID)
	}
	return id, err
}

func (s *Store) update(ctx context.Context, lock func(*db.Queries) (db.Session, error), fn func(*Tx) error) error {
	var tx *Tx
	written := false
	err := replan.InTx(ctx, s.pool, func(pgtx pgx.Tx) error {
		q := s.q.WithTx(pgtx)
		row, err := lock(q)
		if err != nil {
			return err
		}
		tx = &Tx{Tx: pgtx, Session: row, s: s, q: q, seq: row.LastSeq, ord: row.LastOrd}
		if err := fn(tx); err != nil {
			return err
		}
		written = true
		if len(tx.news) == 0 {
			return nil
		}
		if err := q.SessionAdvance(ctx, row.ID, tx.seq, tx.ord); err != nil {
			return fmt.Errorf("advance session: %w", err)
		}
		return nil
	})
	if err != nil && written && pgerr.IsTransient(err) && !pgerr.IsRefused(err) {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	if err != nil {
		return err
	}
	s.published(tx.Session.ID, tx.news)
	for _, fn := range tx.committed {
		fn()
	}
	return nil
}

// Head is the seq of the session's newest event, those of this change among them.
func (tx *Tx) Head() int64 { return tx.seq }

// Append writes events of a turn and returns them with their seqs.
func (tx *Tx) Append(ctx context.Context, turn uuid.UUID, bodies ...event.Body) ([]event.Event, error) {
	evs := make([]event.Event, len(bodies))
	arg := db.EventsInsertParams{SessionID: tx.Session.ID, TurnID: turn, Ord: tx.ord}
	for i, b := range bodies {
		data, err := event.Encode(b)
		if err != nil {
			return nil, err
		}
		evs[i] = event.Event{Session: tx.Session.ID, Turn: turn, Kind: b.Kind(), Data: data}
		arg.Kinds = append(arg.Kinds, string(b.Kind()))
		arg.Datas = append(arg.Datas, string(data))
	}
	rows, err := tx.q.EventsInsert(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("insert events: %w", err)
	}
	for i, r := range rows {
		evs[i].Seq, evs[i].Ord, evs[i].At = r.Seq, r.Ord, r.At
		tx.seq, tx.ord = r.Seq, r.Ord
	}
	tx.news = append(tx.news, evs...)
	return evs, nil
}

// raise moves the fence and returns the new epoch.
func (tx *Tx) raise(ctx context.Context) (int64, error) {
	epoch, err := tx.q.SessionRaise(ctx, tx.Session.ID)
	if err != nil {
		return 0, fmt.Errorf("raise epoch: %w", err)
	}
	tx.Session.Epoch = epoch
	return epoch, nil
}
