package main

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/event"
)

// naiveSchema is the log in its most obvious form: a serial cursor, an index to read by it, and a
// trigger that notifies for every row.
const naiveSchema = `
CREATE TABLE naive_events (
    seq        bigserial PRIMARY KEY,
    session_id uuid NOT NULL,
    kind       text NOT NULL,
    data       json NOT NULL,
    at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX naive_events_cursor ON naive_events (session_id, seq);
CREATE FUNCTION naive_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('naive', NEW.session_id::text);
    RETURN NULL;
END $$;
CREATE TRIGGER naive_notify AFTER INSERT ON naive_events FOR EACH ROW EXECUTE FUNCTION naive_notify();`

// naiveLog is the most obvious design, for comparison: one INSERT for each delta, and every stream
// queries again at every notification. Only the bench uses it. Its one refinement is a single
// listening connection for all streams of the process.
type naiveLog struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	readers map[uuid.UUID]map[chan struct{}]struct{}
}

func newNaiveLog(pool *pgxpool.Pool) *naiveLog {
	return &naiveLog{pool: pool, readers: make(map[uuid.UUID]map[chan struct{}]struct{})}
}

// append writes one row; when it returns the row is durable.
func (l *naiveLog) append(ctx context.Context, session uuid.UUID, b event.Body) error {
	data, err := event.Encode(b)
	if err != nil {
		return err
	}
	_, err = l.pool.Exec(ctx, `INSERT INTO naive_events (session_id, kind, data) VALUES ($1, $2, $3)`, session, string(b.Kind()), string(data))
	return err
}

// listen forwards notifications until ctx ends; ready is called once it listens.
func (l *naiveLog) listen(ctx context.Context, ready func()) error {
	conn, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN naive"); err != nil {
		return err
	}
	ready()
	for {
		n, err := conn.WaitForNotification(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		if id, err := uuid.Parse(n.Payload); err == nil {
			l.wake(id)
		}
	}
}

func (l *naiveLog) wake(id uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.readers[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (l *naiveLog) join(id uuid.UUID) (wake chan struct{}, leave func()) {
	wake = make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers[id] == nil {
		l.readers[id] = make(map[chan struct{}]struct{})
	}
	l.readers[id][wake] = struct{}{}
	return wake, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.readers[id], wake)
		if len(l.readers[id]) == 0 {
			delete(l.readers, id)
		}
	}
}

// follow yields the rows after a cursor without end.
func (l *naiveLog) follow(ctx context.Context, session uuid.UUID, cursor int64) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		wake, leave := l.join(session)
		defer leave()
		for {
			evs, err := l.after(ctx, session, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(evs) > 0 {
				cursor = evs[len(evs)-1].Seq
				if !yield(evs, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case <-wake:
			}
		}
	}
}

// after reads the rows after a cursor.
func (l *naiveLog) after(ctx context.Context, session uuid.UUID, cursor int64) ([]event.Event, error) {
	rows, err := l.pool.Query(ctx, `SELECT seq, kind, data FROM naive_events WHERE session_id = $1 AND seq > $2 ORDER BY seq`, session, cursor)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (event.Event, error) {
		ev := event.Event{Session: session}
		return ev, row.Scan(&ev.Seq, &ev.Kind, &ev.Data)
	})
}
