package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// Tx is a change of one session, made under its lock. Inside the closure of Update only the Tx may
// be used: rows, events and jobs written through it are stored together or not at all.
//
// Its writes are queued and sent with the next read or with the commit, so a later call can return
// the error of an earlier one.
type Tx struct {
	*replan.Tx // for statements that must commit with it, such as jobs

	row   db.Session // the locked row, with the changes made so far; its newest event is that of log
	s     *Store
	q     *db.Queries // run at once, after the queued statements
	later *db.Queries // queued

	log     eventlog.Draft // the events of the change
	fence   int64          // epochs up to this one belong to a lost timeline
	active  bool           // false: no turn is active
	linedUp bool           // false: no turn is lined up

	unsaved bool // row or log differs from the database

	committed []func()
}

// SessionID returns the id of the locked session.
func (tx *Tx) SessionID() uuid.UUID { return tx.row.ID }

// WorkspaceID returns the workspace of the locked session.
func (tx *Tx) WorkspaceID() uuid.UUID { return tx.row.WorkspaceID }

// OnCommit calls fn once the change is committed, and never if it is not.
func (tx *Tx) OnCommit(fn func()) { tx.committed = append(tx.committed, fn) }

// ErrUnknownOutcome means that the response to a commit was lost: the change may have been made.
var ErrUnknownOutcome = errors.New("the outcome of the commit is unknown")

// Ref names the session of a message: by its id, by its caller, or a new one.
type Ref struct {
	Workspace uuid.UUID
	ID        uuid.UUID // uuid.Nil for none; takes precedence
	CallerID  string    // "" for none
}

// Update locks a session, runs fn and commits. Readers are woken after the commit.
func (s *Store) Update(ctx context.Context, id uuid.UUID, fn func(*Tx) error) error {
	return s.updateLocked(ctx, locking{
		queue:   func(q *db.Queries) error { return q.SessionLock(ctx, id) },
		missing: NotFound(id),
	}, fn)
}

// Open is Update for the session that a message belongs to. A session that the Ref does not
// identify is new, and is created if fn begins a turn.
func (s *Store) Open(ctx context.Context, ref Ref, fn func(*Tx) error) error {
	return s.updateLocked(ctx, ref.lockingOf(ctx), fn)
}

// locking describes how a change locks its session.
type locking struct {
	queue   func(*db.Queries) error // queues the statements that take the lock; nil: fresh needs none
	missing error                   // if they locked no session; nil: they are retried
	fresh   db.Session              // a session that does not exist yet
}

// lockingOf finds or creates the session. If many first calls with one caller id arrive at once,
// the unique index lets one create it; the others wait for that call and find the session. The
// previous holder of the lock may have erased or forgotten a caller's session: then the caller has
// another session, or none.
func (r Ref) lockingOf(ctx context.Context) locking {
	if r.ID != uuid.Nil {
		return locking{
			queue:   func(q *db.Queries) error { return q.SessionLockOf(ctx, r.ID, r.Workspace) },
			missing: NotFound(r.ID),
		}
	}
	id := uuid.Must(uuid.NewV7())
	if r.CallerID == "" {
		return locking{fresh: db.Session{ID: id, WorkspaceID: r.Workspace}}
	}
	return locking{queue: func(q *db.Queries) error {
		if err := q.SessionInsert(ctx, id, r.Workspace, r.CallerID); err != nil {
			return err
		}
		return q.SessionLockCaller(ctx, r.Workspace, r.CallerID)
	}}
}

// usualEvents is how many events a change usually has. Seqs for more are drawn when they are
// needed.
const usualEvents = 4

// lockSession takes the lock and reads the session, in one round trip.
func (tx *Tx) lockSession(ctx context.Context, l locking) error {
	if l.queue == nil {
		row, err := tx.q.SessionNew(ctx)
		if err != nil {
			return fmt.Errorf("prepare a session: %w", err)
		}
		tx.row, tx.fence = l.fresh, row.Fence
		tx.log = eventlog.Draft{Tx: tx.Tx, Session: l.fresh.ID, At: row.Now, Free: row.Seqs}
		tx.row.CreatedAt, tx.row.UpdatedAt = row.Now, row.Now
		return nil
	}
	for {
		if err := l.queue(tx.later); err != nil {
			return fmt.Errorf("lock session: %w", err)
		}
		row, err := tx.q.SessionLocked(ctx, usualEvents)
		switch {
		case errors.Is(err, pgx.ErrNoRows) && l.missing != nil:
			return l.missing
		case errors.Is(err, pgx.ErrNoRows), err == nil && l.missing == nil && row.Session.ErasedAt != nil:
			continue
		case err != nil:
			return fmt.Errorf("lock session: %w", err)
		}
		tx.row, tx.fence = row.Session, row.Fence
		tx.log = eventlog.Draft{Tx: tx.Tx, Session: row.Session.ID, At: row.Now,
			Seq: row.Session.LastSeq, Ord: row.Session.LastOrd, Free: row.Seqs}
		tx.active, tx.linedUp = row.Active, row.LinedUp > 0
		return nil
	}
}

func (s *Store) updateLocked(ctx context.Context, l locking, fn func(*Tx) error) error {
	var tx *Tx
	written := false
	err := replan.Pipelined(ctx, s.pool, func(on *replan.Tx) error {
		tx = &Tx{Tx: on, s: s, q: s.q.WithTx(on), later: db.New(on.Later())}
		if err := tx.lockSession(ctx, l); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		written = true
		return tx.queueChanges(ctx)
	})
	if err != nil && written && pgerr.IsUnconfirmed(err) {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	if err != nil {
		return err
	}
	if news := tx.log.News(); len(news) > 0 {
		s.events.Publish(tx.row.ID, news)
	}
	for _, fn := range tx.committed {
		fn()
	}
	return nil
}

// queueChanges queues the changes of the session's row.
func (tx *Tx) queueChanges(ctx context.Context) error {
	if !tx.unsaved {
		return nil
	}
	tx.unsaved = false
	row := &tx.row
	return tx.later.SessionSave(ctx, db.SessionSaveParams{ID: row.ID, Epoch: row.Epoch,
		LastSeq: tx.log.Seq, LastOrd: tx.log.Ord, TurnID: row.TurnID})
}

// Head returns the seq of the session's newest event, including those of this change.
func (tx *Tx) Head() int64 { return tx.log.Seq }

// Append writes events of a turn and returns them with their seqs.
func (tx *Tx) Append(ctx context.Context, turn uuid.UUID, bodies ...event.Body) ([]event.Event, error) {
	tx.unsaved = true
	return tx.log.Append(ctx, turn, bodies)
}

// assignPlaces assigns events their places in the log and returns their rows, which the caller
// stores.
func (tx *Tx) assignPlaces(ctx context.Context, turn uuid.UUID, bodies []event.Body) ([]event.Event, eventlog.Rows, error) {
	tx.unsaved = true
	return tx.log.Record(ctx, turn, bodies)
}

// raiseFence moves the fence: workers of older epochs write nothing more. After a failover or a
// restore, the new epoch is higher than all epochs of the lost timeline, whose workers may still
// run.
func (tx *Tx) raiseFence() {
	tx.unsaved = true
	tx.row.Epoch = max(tx.row.Epoch, tx.fence) + 1
}
