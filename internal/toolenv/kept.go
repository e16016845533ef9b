package toolenv

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Limits of the folders that a process keeps after a turn: most sessions continue soon, after an
// approval or with the next message, and on the same server.
const (
	keepTime    = 10 * time.Minute
	keepFolders = 32
	keepBytes   = 2 << 30 // for all of them together
)

// place is a session's folder on this machine, as it was last saved.
type place struct {
	folder *workdir.Folder
	dir    string
	root   *os.Root // root of dir
	since  time.Time
}

// isPresent reports whether the folder still exists at its path: temporary directories are cleaned.
func (p place) isPresent() bool {
	is, err := os.Lstat(p.dir)
	if err != nil {
		return false
	}
	was, err := p.root.Stat(".")
	return err == nil && os.SameFile(is, was)
}

// kept are the places that no run uses. The zero value is ready to use.
type kept struct {
	mu     sync.Mutex
	places map[uuid.UUID]place // by session
}

// takePlace removes and returns a session's place, if it is kept.
func (k *kept) takePlace(session uuid.UUID) (p place, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok = k.places[session]
	delete(k.places, session)
	return p, ok
}

// keepPlace keeps a session's place, and returns the places that must be removed to make room.
func (k *kept) keepPlace(session uuid.UUID, p place) (gone []place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.places[session]; ok {
		gone = append(gone, old)
	}
	if k.places == nil {
		k.places = make(map[uuid.UUID]place)
	}
	k.places[session] = p
	for k.tooMuch() {
		oldest := session
		for id, p := range k.places {
			if p.since.Before(k.places[oldest].since) {
				oldest = id
			}
		}
		gone = append(gone, k.places[oldest])
		delete(k.places, oldest)
	}
	return gone
}

// tooMuch requires the lock.
func (k *kept) tooMuch() bool {
	var bytes int64
	for _, p := range k.places {
		bytes += p.folder.Bytes()
	}
	return len(k.places) > keepFolders || bytes > keepBytes
}

// removeBefore removes and returns the places that were kept before a time.
func (k *kept) removeBefore(t time.Time) (gone []place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, p := range k.places {
		if p.since.Before(t) {
			gone = append(gone, p)
			delete(k.places, id)
		}
	}
	return gone
}

// keptSessions returns the sessions with a kept place.
func (k *kept) keptSessions() []uuid.UUID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.places))
}

// removeErased drops the places of sessions that any process has erased.
func (r *Runner) removeErased(ctx context.Context) error {
	ids := r.kept.keptSessions()
	if len(ids) == 0 {
		return nil
	}
	erased, err := r.q.SessionsErased(ctx, ids)
	if err != nil {
		return fmt.Errorf("look for sessions that were erased: %w", err)
	}
	for _, id := range erased {
		if p, ok := r.kept.takePlace(id); ok {
			r.removePlaces(p)
		}
	}
	return nil
}

// removePlaces removes places from this machine.
func (r *Runner) removePlaces(places ...place) {
	for _, p := range places {
		p.root.Close()
		if err := r.removeDir(p.dir); err != nil {
			r.log.Warn("remove a folder; it is swept at the next start", "err", err)
		}
	}
}
