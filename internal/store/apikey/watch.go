package apikey

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/outage"
)

// ErrDead is the cause when a context of While ended: the key is revoked or expired.
var ErrDead = errors.New("the API key is not valid any more")

// checkEvery is the pause between two checks of the keys in use.
const checkEvery = 500 * time.Millisecond

// watch holds the contexts that end with a key.
type watch struct {
	mu   sync.Mutex
	held map[string]map[*context.CancelCauseFunc]struct{}
}

// While returns a context that ends with ErrDead soon after the key does. The
// caller must call stop. Run must be running.
func (s *Store) While(ctx context.Context, id string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = make(map[string]map[*context.CancelCauseFunc]struct{})
	}
	if w.held[id] == nil {
		w.held[id] = make(map[*context.CancelCauseFunc]struct{})
	}
	w.held[id][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.held[id], &cancel)
		if len(w.held[id]) == 0 {
			delete(w.held, id)
		}
	}
}

// Run checks all keys with open contexts, twice a second and in one query, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	checks := outage.New(s.log, "look for revoked keys")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		checks.Note(ctx, s.checkChanges(ctx))
	}
}

func (s *Store) checkChanges(ctx context.Context) error {
	w := &s.watch
	w.mu.Lock()
	ids := slices.Collect(maps.Keys(w.held))
	w.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dead, err := s.q.APIKeysDead(ctx, ids)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range dead {
		s.cache.forget(id)
		for cancel := range w.held[id] {
			(*cancel)(ErrDead)
		}
	}
	return nil
}
