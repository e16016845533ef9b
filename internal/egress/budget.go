package egress

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// DefaultBodyMemory is the default memory for bodies that may contain secrets.
const DefaultBodyMemory = 64 << 20

// bodyWait is how long a request waits for memory.
const bodyWait = 10 * time.Second

// bodyBudget limits the memory for bodies, of one run or of all runs of a process. Waiting requests
// get memory in their order.
type bodyBudget struct {
	bytes *semaphore.Weighted
	wait  time.Duration
}

func newBodyBudget(bytes int64) *bodyBudget {
	return &bodyBudget{semaphore.NewWeighted(max(bytes, MaxSearchedBody)), bodyWait}
}

// acquireBytes waits until a number of bytes is free. release may be called more than once.
func (b *bodyBudget) acquireBytes(ctx context.Context, bytes int64) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, b.wait)
	defer cancel()
	if err := b.bytes.Acquire(waiting, bytes); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, newRefusal(RefusedRequest, http.StatusServiceUnavailable,
			"Other requests use all memory for bodies that may hold secrets. Try again later, or send a smaller body.")
	}
	return sync.OnceFunc(func() { b.bytes.Release(bytes) }), nil
}
