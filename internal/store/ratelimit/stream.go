package ratelimit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/fault"
)

// freshFor is the minimum pause between two reads of the other replicas' counts when streams are
// rejected.
const freshFor = 100 * time.Millisecond

// streams are the open streams of every key: exact for this replica, and for the others as they
// last published them.
type streams struct {
	turn chan struct{} // one exchange at a time

	mu        sync.Mutex
	here      map[string]int
	elsewhere map[string]int
	asked     time.Time // last read of the others' counts
	published bool      // the others' records contain streams of this replica
}

func newStreams() streams {
	return streams{turn: make(chan struct{}, 1), here: make(map[string]int), elsewhere: make(map[string]int)}
}

// Hold counts a stream of a key as open until release is called. A key that holds its maximum over
// all replicas is rejected with CONCURRENCY_LIMIT.
func (s *Store) Hold(ctx context.Context, key string, most int) (release func(), err error) {
	if !s.streams.openStream(key, most) {
		// The others' counts may be a second old: a replica may just have died.
		if err := s.refreshCounts(ctx); err != nil {
			s.log.WarnContext(ctx, "ask for the open streams of a key", "key", key, "err", err)
		}
		if !s.streams.openStream(key, most) {
			return nil, &fault.Error{Code: fault.ConcurrencyLimit, Detail: fault.Detail{RetryAfter: time.Second},
				Message: fmt.Sprintf("This key has %d streams open, which is as many as it may have. Close one, or wait for one to end.", most)}
		}
	}
	return sync.OnceFunc(func() { s.streams.closeStream(key) }), nil
}

func (t *streams) openStream(key string, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.here[key]+t.elsewhere[key] >= most {
		return false
	}
	t.here[key]++
	return true
}

// hasStreams reports whether any streams are known, on this replica or others.
func (t *streams) hasStreams() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.here) > 0 || len(t.elsewhere) > 0 || t.published
}

func (t *streams) closeStream(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.here[key]--; t.here[key] == 0 {
		delete(t.here, key)
	}
}

// refreshCounts exchanges the counts, unless an exchange has just happened.
func (s *Store) refreshCounts(ctx context.Context) error {
	s.streams.mu.Lock()
	fresh := time.Since(s.streams.asked) < freshFor
	s.streams.mu.Unlock()
	if fresh {
		return nil
	}
	return s.exchangeCounts(ctx)
}

// exchangeCounts publishes this replica's open streams, and reads those of the others.
func (s *Store) exchangeCounts(ctx context.Context) error {
	t := &s.streams
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	t.mu.Lock()
	here, published := maps.Clone(t.here), t.published
	t.mu.Unlock()
	if len(here) > 0 || published {
		held, err := json.Marshal(here)
		if err == nil {
			err = s.q.StreamsPublish(ctx, s.opt.Node, held)
		}
		if err != nil {
			return fmt.Errorf("publish open streams: %w", err)
		}
		t.mu.Lock()
		t.published = len(here) > 0
		t.mu.Unlock()
	}
	rows, err := s.q.StreamsElsewhere(ctx, s.opt.Node)
	if err != nil {
		return fmt.Errorf("read open streams: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = time.Now()
	clear(t.elsewhere)
	for _, row := range rows {
		t.elsewhere[row.KeyID] = int(row.Streams)
	}
	return nil
}

// withdrawCounts removes this replica's streams from the shared counts at once, so that their
// clients can open streams elsewhere.
func (s *Store) withdrawCounts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.q.StreamsWithdraw(ctx, s.opt.Node); err != nil {
		s.log.WarnContext(ctx, "withdraw the count of open streams", "err", err)
	}
	return nil
}
