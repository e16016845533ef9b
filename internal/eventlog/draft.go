package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/replan"
)

// Draft is the part of a session's log that one transaction writes together with other changes. The
// transaction holds the lock of the session and draws the seqs after it took the lock, so that a
// cursor on seq loses no rows. The ordinals have no gaps. A session that does not exist yet needs
// no lock: no other process knows its id.
type Draft struct {
	Tx      *replan.Tx // its statements, at once and queued
	Session uuid.UUID
	At      time.Time // PostgreSQL's clock under the lock: the time of the events
	Seq     int64     // seq of the session's newest event, including those of the draft
	Ord     int64     // its ordinal
	Free    []int64   // seqs that are drawn and unused

	news []event.Event
}

// Rows are events of one turn as a statement stores them. Their ordinals follow Ord.
type Rows struct {
	At    time.Time
	Ord   int64
	Seqs  []int64
	Kinds []string
	Datas []string
}

// News returns the events of the draft, for Publish.
func (d *Draft) News() []event.Event { return d.news }

// Append queues the statement that stores events of a turn, and returns them with their seqs.
func (d *Draft) Append(ctx context.Context, turn uuid.UUID, bodies []event.Body) ([]event.Event, error) {
	evs, rows, err := d.Record(ctx, turn, bodies)
	if err != nil {
		return nil, err
	}
	err = db.New(d.Tx.Later()).EventsInsert(ctx, db.EventsInsertParams{SessionID: d.Session, TurnID: turn,
		At: rows.At, Ord: rows.Ord, Seqs: rows.Seqs, Kinds: rows.Kinds, Datas: rows.Datas})
	if err != nil {
		return nil, fmt.Errorf("insert events: %w", err)
	}
	return evs, nil
}

// Record assigns events their places in the log and returns their rows, which the caller stores
// with the statement that makes the change.
func (d *Draft) Record(ctx context.Context, turn uuid.UUID, bodies []event.Body) ([]event.Event, Rows, error) {
	if err := d.reserveSeqs(ctx, len(bodies)); err != nil {
		return nil, Rows{}, err
	}
	evs := make([]event.Event, len(bodies))
	rows := Rows{At: d.At, Ord: d.Ord, Seqs: d.Free[:len(bodies)]}
	for i, b := range bodies {
		data, err := event.Encode(b)
		if err != nil {
			return nil, Rows{}, err
		}
		evs[i] = event.Event{Seq: rows.Seqs[i], Ord: rows.Ord + int64(i) + 1, Session: d.Session, Turn: turn,
			At: d.At, Kind: b.Kind(), Data: data}
		rows.Kinds = append(rows.Kinds, string(b.Kind()))
		rows.Datas = append(rows.Datas, string(data))
	}
	last := evs[len(evs)-1]
	d.Free, d.Seq, d.Ord = d.Free[len(bodies):], last.Seq, last.Ord
	d.news = append(d.news, evs...)
	return evs, rows, nil
}

// reserveSeqs draws seqs until at least n are available.
func (d *Draft) reserveSeqs(ctx context.Context, n int) error {
	if n <= len(d.Free) {
		return nil
	}
	more, err := db.New(d.Tx).EventSeqs(ctx, int32(n-len(d.Free)))
	if err != nil {
		return fmt.Errorf("draw ids of events: %w", err)
	}
	d.Free = append(d.Free, more...)
	return nil
}
