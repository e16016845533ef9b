package workspace

import (
	"sync"

	"github.com/google/uuid"
)

// known remembers what it takes to refuse a request of a workspace's key: its name, which never
// changes, and its limits, as they were when it was last found.
type known struct {
	mu sync.Mutex
	m  map[uuid.UUID]Workspace
}

const maxKnown = 10_000

func (k *known) keepRow(w Workspace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil || len(k.m) >= maxKnown {
		k.m = make(map[uuid.UUID]Workspace)
	}
	k.m[w.ID] = Workspace{ID: w.ID, Slug: w.Slug, MessagesPerMinute: w.MessagesPerMinute, CallsPerMinute: w.CallsPerMinute}
}

// Known is the name of a workspace and its limits of requests, as they were when anybody last
// found it here, without asking the database.
func (s *Store) Known(id uuid.UUID) (Workspace, bool) {
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	w, ok := s.known.m[id]
	return w, ok
}
