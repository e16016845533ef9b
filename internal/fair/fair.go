// Package fair shares a process's places among workspaces: places for commands, fetches, model
// calls, callbacks and turns.
//
// It promises that a workspace which holds many places always leaves some to others, so that a new
// workspace does not wait for a long holder, and that waiting workspaces are served round robin,
// each one's own waiters in their order. It does not depend on the purpose of a place.
package fair

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Share limits a workspace: it gets another place only while it holds fewer than Share times as
// many places as are free, and the last free place only if it holds none. With 16 places, the first
// workspace gets 12, a second one 3, and a third one the last.
const Share = 3

// Places is a number of places that workspaces share. It is safe for concurrent use.
type Places struct {
	mu      sync.Mutex
	free    int
	held    map[uuid.UUID]int
	waiting map[uuid.UUID][]chan struct{} // in the order of their arrival
	round   []uuid.UUID                   // the workspaces in waiting, the next one first
}

// New returns n places, at least one.
func New(n int) *Places {
	return &Places{free: max(n, 1), held: make(map[uuid.UUID]int), waiting: make(map[uuid.UUID][]chan struct{})}
}

// Acquire waits until the workspace may take a place. release frees it and may be called more than
// once.
func (p *Places) Acquire(ctx context.Context, workspace uuid.UUID) (release func(), err error) {
	p.mu.Lock()
	if p.mayTake(workspace) {
		defer p.mu.Unlock()
		return p.take(workspace), nil
	}
	granted := make(chan struct{})
	if len(p.waiting[workspace]) == 0 {
		p.round = append(p.round, workspace)
	}
	p.waiting[workspace] = append(p.waiting[workspace], granted)
	p.mu.Unlock()

	select {
	case <-granted:
		return p.releaser(workspace), nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-granted: // both happened at once
		p.giveBack(workspace)
	default:
		p.leave(workspace, granted)
	}
	return nil, context.Cause(ctx)
}

// TryAcquire takes a place if the workspace may have one now.
func (p *Places) TryAcquire(workspace uuid.UUID) (release func(), ok bool) {
	_, release, ok = p.AcquireAny([]uuid.UUID{workspace})
	return release, ok
}

// AcquireAny takes a place for one of the workspaces: of those that may have one now, the first
// that holds the fewest.
func (p *Places) AcquireAny(workspaces []uuid.UUID) (workspace uuid.UUID, release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range workspaces {
		if p.mayTake(w) && (!ok || p.held[w] < p.held[workspace]) {
			workspace, ok = w, true
		}
	}
	if !ok {
		return uuid.Nil, nil, false
	}
	return workspace, p.take(workspace), true
}

// Free returns the number of places that are free.
func (p *Places) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

// Full returns the workspaces that may not take another place now.
func (p *Places) Full() []uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := []uuid.UUID{}
	for w := range p.held {
		if !p.mayTake(w) {
			full = append(full, w)
		}
	}
	return full
}

// mayTake reports whether the workspace may take another place. p.mu is held.
func (p *Places) mayTake(workspace uuid.UUID) bool {
	held := p.held[workspace]
	return p.free > 0 && (held == 0 || p.free > 1 && held < Share*p.free)
}

func (p *Places) take(workspace uuid.UUID) (release func()) {
	p.free--
	p.held[workspace]++
	return p.releaser(workspace)
}

func (p *Places) releaser(workspace uuid.UUID) (release func()) {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.giveBack(workspace)
	})
}

// giveBack frees a place and grants free places to waiters. p.mu is held.
func (p *Places) giveBack(workspace uuid.UUID) {
	p.free++
	if p.held[workspace]--; p.held[workspace] == 0 {
		delete(p.held, workspace)
	}
	for {
		i := slices.IndexFunc(p.round, p.mayTake)
		if i < 0 {
			return
		}
		next := p.round[i]
		granted := p.waiting[next][0]
		p.leave(next, granted)
		if at := slices.Index(p.round, next); at >= 0 { // it has more waiters: the others come first
			p.round = append(slices.Delete(p.round, at, at+1), next)
		}
		p.free--
		p.held[next]++
		close(granted)
	}
}

// leave removes a waiter from its line. p.mu is held.
func (p *Places) leave(workspace uuid.UUID, waiter chan struct{}) {
	line := slices.DeleteFunc(p.waiting[workspace], func(c chan struct{}) bool { return c == waiter })
	if len(line) > 0 {
		p.waiting[workspace] = line
		return
	}
	delete(p.waiting, workspace)
	p.round = slices.DeleteFunc(p.round, func(w uuid.UUID) bool { return w == workspace })
}
