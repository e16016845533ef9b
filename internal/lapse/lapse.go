// Package lapse holds contexts that end when a right ends: that of a key or of a signed-in browser.
// Its owner checks all rights in use twice a second, with one query.
package lapse

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/outage"
)

// checkEvery is the pause between two checks of the rights in use.
const checkEvery = 500 * time.Millisecond

// Watch holds the contexts that end with a right. The zero Watch is ready.
type Watch struct {
	mu   sync.Mutex
	held map[string]map[*context.CancelCauseFunc]struct{}
}

// While returns a context that ends soon after the right with this id does. The caller must call
// stop. Run must be running.
func (w *Watch) While(ctx context.Context, id string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
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

// Run checks all rights with open contexts until ctx ends. dead returns those that have ended;
// their contexts end with cause. what names the check in the log.
func (w *Watch) Run(ctx context.Context, log *slog.Logger, what string, cause error, dead func(context.Context, []string) ([]string,
	error)) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	checks := outage.New(log, what)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		checks.Note(ctx, w.check(ctx, cause, dead))
	}
}

func (w *Watch) check(ctx context.Context, cause error, dead func(context.Context, []string) ([]string, error)) error {
	w.mu.Lock()
	ids := slices.Collect(maps.Keys(w.held))
	w.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ended, err := dead(ctx, ids)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ended {
		for cancel := range w.held[id] {
			(*cancel)(cause)
		}
	}
	return nil
}
