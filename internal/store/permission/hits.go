package permission

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// hitsEvery is the minimum time between two writes of an entry's uses.
const hitsEvery = time.Minute

// hits counts the uses of the allow-list's entries in memory until they are written. A killed
// process loses its unwritten counts: at most the last minute of an entry in constant use. A nil
// hits counts nothing.
type hits struct {
	mu      sync.Mutex
	entries map[uuid.UUID]*uses
}

type uses struct {
	pending int64
	written time.Time
}

func (h *hits) addHit(id uuid.UUID) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entries == nil {
		h.entries = make(map[uuid.UUID]*uses)
	}
	u := h.entries[id]
	if u == nil {
		u = &uses{}
		h.entries[id] = u
	}
	u.pending++
}

// dueHits returns and removes the counts to be written now.
func (h *hits) dueHits(now time.Time) map[uuid.UUID]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	var counts map[uuid.UUID]int64
	for id, u := range h.entries {
		switch {
		case now.Sub(u.written) < hitsEvery:
		case u.pending == 0:
			delete(h.entries, id)
		default:
			if counts == nil {
				counts = make(map[uuid.UUID]int64)
			}
			counts[id] = u.pending
			u.pending, u.written = 0, now
		}
	}
	return counts
}
