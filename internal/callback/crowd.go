package callback

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// MaxAtOnce is how many attempts of one workspace this process makes at once, so
	// that its slow receivers leave room for those of others.
	MaxAtOnce = 20
	// crowdedPause is how long what finds no room waits before it looks again.
	crowdedPause = time.Second
)

// crowd counts the attempts under way by workspace. The zero value is empty.
type crowd struct {
	mu sync.Mutex
	n  map[uuid.UUID]int
}

// enter takes a place; leave gives it back. ok is false where there is none.
func (c *crowd) enter(workspace uuid.UUID) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[uuid.UUID]int)
	}
	if c.n[workspace] >= MaxAtOnce {
		return nil, false
	}
	c.n[workspace]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.n[workspace]--; c.n[workspace] == 0 {
			delete(c.n, workspace)
		}
	}, true
}
