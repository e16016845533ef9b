package ratelimit

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/fault"
)

// Class is the class of a request for rate limits.
type Class string

const (
	Messages Class = "messages"
	Calls    Class = "calls"
)

// Quota is the state of a key's quota of a class after a request.
type Quota struct {
	Size int           // requests in a minute
	Left int           // number that would be allowed now
	Next time.Duration // until one more is allowed
}

const (
	minute = 60.0 // seconds: the window of every quota
	// patience is the maximum delay of a request by its count. A failed count does not reject the
	// request.
	patience = 500 * time.Millisecond
	// abreast is how many counts of one key may run at once in this process: further requests wait
	// without a connection.
	abreast = 4
	// maxBuckets limits the memory. Forgetting one costs a query.
	maxBuckets = 10_000
)

// bucket is this process's record of a key's quota: the time until which the quota is used up. The
// quota never refills earlier, so no query is needed before that time.
type bucket struct {
	line  chan struct{}
	mu    sync.Mutex
	empty time.Time // until
}

type bucketID struct {
	key   string
	class Class
}

// Take counts a request of a key that may make size of them in a minute: that many at once, then
// one each 60/size seconds. If the quota is used up it fails with RATE_LIMITED. Any other error
// leaves the request uncounted.
func (s *Store) Take(ctx context.Context, key string, class Class, size int) (Quota, error) {
	b := s.bucketOf(key, class)
	if wait := b.waitTime(); wait > 0 {
		return rateLimited(class, size, wait)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case b.line <- struct{}{}:
		defer func() { <-b.line }()
	case <-ctx.Done():
		return Quota{}, fmt.Errorf("count a request: %w", ctx.Err())
	}
	if wait := b.waitTime(); wait > 0 { // the requests before it have used up the quota
		return rateLimited(class, size, wait)
	}
	// PostgreSQL counts microseconds; rounded up, the last request of a burst would not fit.
	share := math.Floor(minute/float64(size)*1e6) / 1e6
	row, err := s.q.RateTake(ctx, key, string(class), share)
	if err != nil {
		return Quota{}, fmt.Errorf("count a request: %w", err)
	}
	if !row.Allowed {
		wait := secondsOf(max(row.Debt+share-minute, 1e-3))
		b.refuseFor(wait)
		return rateLimited(class, size, wait)
	}
	used := math.Ceil(row.Debt / share)
	return Quota{Size: size, Left: max(0, size-int(used)), Next: secondsOf(row.Debt - (used-1)*share)}, nil
}

func rateLimited(class Class, size int, wait time.Duration) (Quota, error) {
	return Quota{Size: size, Next: wait}, &fault.Error{Code: fault.RateLimited, Detail: fault.Detail{RetryAfter: wait},
		Message: fmt.Sprintf("This key has used its %d %s per minute. Wait %.0f s.", size, class, math.Ceil(wait.Seconds()))}
}

// Empty reports whether this process knows, without a query, that the key has used up its quota of
// a class.
func (s *Store) Empty(key string, class Class) bool { return s.bucketOf(key, class).waitTime() > 0 }

func (s *Store) bucketOf(key string, class Class) *bucket {
	id := bucketID{key, class}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[id]
	if b == nil {
		if s.buckets == nil || len(s.buckets) >= maxBuckets {
			s.buckets = make(map[bucketID]*bucket)
		}
		b = &bucket{line: make(chan struct{}, abreast)}
		s.buckets[id] = b
	}
	return b
}

func (b *bucket) waitTime() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.empty)
}

func (b *bucket) refuseFor(wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.empty = time.Now().Add(wait)
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
