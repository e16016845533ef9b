package eventlog

import (
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

// The newest events of a session are kept in memory for its readers: at least this many bytes, at
// most twice as many. Slower readers read rows. Ten thousand busy sessions have to fit.
const (
	tailEvents = 128
	tailBytes  = 32 << 10
)

// expectReader is how long the sender of a message may take to follow it before its events are read
// from the table.
const expectReader = 2 * time.Second

// topic holds the tail of the log of a session that has readers in this process. All its readers
// share it. It holds every row with a seq above floor and up to head; the gapless ordinals prove
// that none is missing.
type topic struct {
	session uuid.UUID
	since   time.Time
	readers map[chan struct{}]struct{} // guarded by topics.mu
	held    []chan struct{}            // those of expected readers; guarded by topics.mu

	mu     sync.Mutex
	events []event.Event
	bytes  int
	floor  int64 // -1: unknown
	head   int64 // seq of the newest known event
	ord    int64 // its ordinal; 0: unknown
}

// eventsAfter returns the events behind a cursor; known is false if the tail does not reach back
// that far.
func (t *topic) eventsAfter(cursor int64) (evs []event.Event, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.floor < 0 || cursor < t.floor {
		return nil, false
	}
	i := sort.Search(len(t.events), func(i int) bool { return t.events[i].Seq > cursor })
	return t.events[i:len(t.events):len(t.events)], true
}

// caughtUp records that a reader at cursor has read the last page from the database: the tail
// begins there, unless it has already begun.
func (t *topic) caughtUp(cursor int64, page []event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.floor >= 0 {
		return
	}
	t.floor, t.head, t.ord = cursor, cursor, 0
	if n := len(page); n > 0 {
		t.floor, t.head, t.ord = page[n-1].Seq, page[n-1].Seq, page[n-1].Ord
	}
}

// addEvents adds committed events in order. base is the seq after which they are known to be
// complete, or
// -1 if only the ordinals can prove it.
func (t *topic) addEvents(evs []event.Event, base int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ev := range evs {
		if t.floor >= 0 && ev.Seq <= t.head {
			continue
		}
		joined := t.floor >= 0 && (t.ord > 0 && ev.Ord == t.ord+1 || t.ord == 0 && base == t.head)
		if !joined { // rows in between are committed, and readers that need them query them
			t.events, t.bytes, t.floor = nil, 0, ev.Seq-1
		}
		t.events = append(t.events, ev)
		t.bytes += len(ev.Data)
		t.head, t.ord = ev.Seq, ev.Ord
	}
	if len(t.events) > 2*tailEvents || t.bytes > 2*tailBytes {
		t.dropOlderHalf()
	}
}

// dropOlderHalf drops the older half. Readers keep their slices.
func (t *topic) dropOlderHalf() {
	cut := 0
	for cut < len(t.events)-1 && (len(t.events)-cut > tailEvents || t.bytes > tailBytes) {
		t.bytes -= len(t.events[cut].Data)
		cut++
	}
	if cut == 0 { // keep one event that is larger than the limit
		return
	}
	t.floor = t.events[cut-1].Seq
	t.events = append([]event.Event(nil), t.events[cut:]...)
}

// tailPosition returns the end of the tail; known is false before it has begun.
func (t *topic) tailPosition() (head int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head, t.floor >= 0
}

// topics holds the sessions that this process follows.
type topics struct {
	mu sync.Mutex
	m  map[uuid.UUID]*topic
}

func (ts *topics) init() { ts.m = make(map[uuid.UUID]*topic) }

// joinReader registers a reader. Its channel holds a value whenever new events may exist.
func (ts *topics) joinReader(from From) (*topic, chan struct{}) {
	wake := make(chan struct{}, 1)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.m[from.Session]
	if t == nil {
		t = &topic{session: from.Session, since: from.Since, readers: make(map[chan struct{}]struct{}), floor: -1}
		ts.m[from.Session] = t
	}
	if from.Since.Before(t.since) {
		t.since = from.Since
	}
	t.readers[wake] = struct{}{}
	for _, held := range t.held { // the expected reader has arrived
		delete(t.readers, held)
	}
	t.held = nil
	return t, wake
}

// Expect keeps the events after a cursor in memory until their first reader arrives, for two
// seconds at most. Call it before the commit of the turn that the reader will follow.
func (l *Log) Expect(from From) { l.topics.holdTopic(from) }

// holdTopic keeps a topic until its first reader arrives and finds the events since then in memory.
func (ts *topics) holdTopic(from From) {
	t, wake := ts.joinReader(from)
	ts.mu.Lock()
	t.held = append(t.held, wake)
	ts.mu.Unlock()
	time.AfterFunc(expectReader, func() { ts.leaveReader(t, wake) })
}

func (ts *topics) leaveReader(t *topic, wake chan struct{}) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(t.readers, wake)
	if len(t.readers) == 0 && ts.m[t.session] == t {
		delete(ts.m, t.session)
	}
}

// publishEvents passes committed events to the readers of a session, if any.
func (ts *topics) publishEvents(id uuid.UUID, evs []event.Event, base int64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.m[id]
	if t == nil {
		return
	}
	t.addEvents(evs, base)
	for wake := range t.readers {
		wakeUp(wake)
	}
}

// currentTopics returns the current topics.
func (ts *topics) currentTopics() []*topic {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	list := make([]*topic, 0, len(ts.m))
	for _, t := range ts.m {
		list = append(list, t)
	}
	return list
}

// tailPositions appends the ids of the topics that have a tail, and the ends of their tails.
func (ts *topics) tailPositions(ids []uuid.UUID, heads []int64) ([]uuid.UUID, []int64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for id, t := range ts.m {
		if head, known := t.tailPosition(); known {
			ids, heads = append(ids, id), append(heads, head)
		}
	}
	return ids, heads
}

// position holds the ends of the tails of some sessions.
type position struct {
	ids     []uuid.UUID
	cursors []int64
	since   time.Time
}

// pickPositions returns the positions of the given sessions that are followed, and wakes the
// readers of sessions without a tail, which read from the database themselves.
func (ts *topics) pickPositions(ids map[uuid.UUID]struct{}) position {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var p position
	for id := range ids {
		t := ts.m[id]
		if t == nil {
			continue
		}
		head, known := t.tailPosition()
		if !known {
			for wake := range t.readers {
				wakeUp(wake)
			}
			continue
		}
		p.ids, p.cursors = append(p.ids, id), append(p.cursors, head)
		if p.since.IsZero() || t.since.Before(p.since) {
			p.since = t.since
		}
	}
	return p
}
