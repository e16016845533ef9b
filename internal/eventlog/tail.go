package eventlog

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/outage"
)

// tailer reads the events of other processes: one query per wake-up for all sessions with news,
// and, while events are written, one query a second for every followed session, because a writer
// may die between its commit and its notification.
type tailer struct {
	log *Log
	mu  sync.Mutex

	rechecks, reads *outage.Log

	dirty map[uuid.UUID]struct{}
	wake  chan struct{}

	ids   []uuid.UUID // ids of the newest re-check, kept for the next one: there may be ten thousand
	heads []int64
}

func newTailer(l *Log) *tailer {
	return &tailer{log: l, rechecks: outage.New(l.opt.Log, "re-check the followed sessions"),
		reads: outage.New(l.opt.Log, "read the news of other replicas"), dirty: make(map[uuid.UUID]struct{}), wake: make(chan struct{}, 1)}
}

// markSessions records that a session may have news.
func (t *tailer) markSessions(ids ...uuid.UUID) {
	if len(ids) == 0 {
		return
	}
	t.mu.Lock()
	for _, id := range ids {
		t.dirty[id] = struct{}{}
	}
	t.mu.Unlock()
	wakeUp(t.wake)
}

// markAll records that any session may have news: after a lost connection.
func (t *tailer) markAll() {
	for _, topic := range t.log.topics.currentTopics() {
		t.markSessions(topic.session)
	}
}

func (t *tailer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.wake:
			t.reads.Note(ctx, t.readMarked(ctx))
		}
	}
}

// runRechecks re-checks the followed sessions once a second while events are written anywhere.
func (t *tailer) runRechecks(ctx context.Context) error {
	for work := range t.log.opt.Pulse.Beats(ctx) {
		if work.Written {
			t.rechecks.Note(ctx, t.recheckFollowed(ctx))
		}
	}
	return nil
}

// readMarked reads the new events of the marked sessions. The next re-check repeats failed reads.
func (t *tailer) readMarked(ctx context.Context) error {
	t.mu.Lock()
	marked := t.dirty
	t.dirty = make(map[uuid.UUID]struct{})
	t.mu.Unlock()

	p := t.log.topics.pickPositions(marked)
	if len(p.ids) == 0 {
		return nil
	}
	bases := make(map[uuid.UUID]int64, len(p.ids))
	for i, id := range p.ids {
		bases[id] = p.cursors[i]
	}
	rows, err := t.log.q.EventsWoken(ctx, p.ids, p.cursors, p.since.Add(-Skew), pageRows)
	if err != nil {
		return err
	}
	for len(rows) > 0 {
		id := rows[0].SessionID
		n := 0
		var evs []event.Event
		for ; n < len(rows) && rows[n].SessionID == id; n++ {
			r := rows[n]
			evs = append(evs, event.Event{Seq: r.Seq, Ord: r.Ord, Session: id, Turn: r.TurnID, At: r.At, Kind: event.Kind(r.Kind), Data: r.Data})
		}
		rows = rows[n:]
		t.log.topics.publishEvents(id, evs, bases[id])
		if n == pageRows {
			t.markSessions(id)
		}
	}
	return nil
}

// recheckFollowed compares the followed sessions with their rows.
func (t *tailer) recheckFollowed(ctx context.Context) error {
	t.ids, t.heads = t.log.topics.tailPositions(t.ids[:0], t.heads[:0])
	if len(t.ids) == 0 {
		return nil
	}
	ahead, err := t.log.q.SessionsAhead(ctx, t.ids, t.heads)
	if err != nil {
		return err
	}
	t.markSessions(ahead...)
	return nil
}
