package workspace

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// recent is the maximum age of a workspace from Recent: the same as that of a verified API key. A
// change of a limit therefore applies within a second on every replica.
const recent = 750 * time.Millisecond

// known remembers workspaces as they were last read.
type known struct {
	mu sync.Mutex
	m  map[uuid.UUID]knownRow
}

type knownRow struct {
	row Workspace
	at  time.Time // when it was read
}

const maxKnown = 10_000

func (k *known) keepRow(w Workspace) {
	w.Instructions = "" // up to 256 KiB, which a request does not need
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil || len(k.m) >= maxKnown {
		k.m = make(map[uuid.UUID]knownRow)
	}
	k.m[w.ID] = knownRow{w, time.Now()}
}

func (k *known) get(id uuid.UUID) (knownRow, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, ok := k.m[id]
	return w, ok
}

// Known returns a workspace as it was last read, however long ago, without its instructions. It
// does not query the database.
func (s *Store) Known(id uuid.UUID) (Workspace, bool) {
	w, ok := s.known.get(id)
	return w.row, ok
}

// Recent returns a workspace as it was less than a second ago, without its instructions.
func (s *Store) Recent(ctx context.Context, id uuid.UUID) (Workspace, error) {
	if w, ok := s.known.get(id); ok && time.Since(w.at) < recent {
		return w.row, nil
	}
	w, err := s.Find(ctx, id.String())
	w.Instructions = ""
	return w, err
}
