package session

import (
	"context"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/pgerr"
)

const (
	groupMembers = 64              // maximum number of changes in one transaction
	groupTimeout = 5 * time.Second // for a transaction whose members have no deadline
)

// member is a change that is committed together with others of its kind.
type member[C any] struct {
	ctx    context.Context
	change C // contains the outcome
	err    error
	done   chan struct{} // closed when change and err are set
}

// group commits changes of one kind together: those that arrive while a transaction runs share the
// next one. No goroutine runs while the queue is empty.
//
// An error of the whole transaction is returned to each member, with one exception: if PostgreSQL
// rejected the transaction it committed nothing, and each member gets a transaction of its own, so
// that one does not fail the others. If the fate of the commit is unknown nothing is repeated.
type group[C any] struct {
	// commit commits changes in one transaction and sets their outcomes. It must not wait for a
	// lock of a single member.
	commit func(context.Context, []*C) error

	mu    sync.Mutex
	queue []*member[C]
	busy  bool // a goroutine is processing the queue
}

// commitChange commits a change. If ctx ends while the change is being committed, it waits for it;
// a change that still waits is dropped.
func (g *group[C]) commitChange(ctx context.Context, change C) (C, error) {
	m := &member[C]{ctx: ctx, change: change, done: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, m)
	idle := !g.busy
	g.busy = true
	g.mu.Unlock()
	if idle {
		go g.runQueue()
	}
	<-m.done
	return m.change, m.err
}

// runQueue commits until the queue is empty.
func (g *group[C]) runQueue() {
	for next := g.takeMembers(); len(next) > 0; next = g.takeMembers() {
		g.commitMembers(next)
		for _, m := range next {
			close(m.done)
		}
	}
}

func (g *group[C]) takeMembers() (next []*member[C]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.queue), groupMembers)
	next, g.queue = g.queue[:n:n], g.queue[n:]
	g.busy = n > 0
	return next
}

// commitMembers commits the changes of the members whose deadline has not passed.
func (g *group[C]) commitMembers(members []*member[C]) {
	var alive []*member[C]
	until := time.Time{}
	for _, m := range members {
		if m.err = m.ctx.Err(); m.err != nil {
			continue
		}
		alive = append(alive, m)
		end, ok := m.ctx.Deadline()
		if !ok {
			end = time.Now().Add(groupTimeout)
		}
		if end.After(until) {
			until = end
		}
	}
	if len(alive) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(alive[0].ctx), until)
	defer cancel()
	err := g.commitAll(ctx, alive)
	if len(alive) == 1 || !pgerr.IsRefused(err) || pgerr.Of(err) == pgerr.Unavailable {
		return
	}
	for _, m := range alive {
		_ = g.commitAll(ctx, []*member[C]{m})
	}
}

// commitAll commits changes in one transaction.
func (g *group[C]) commitAll(ctx context.Context, members []*member[C]) error {
	changes := make([]*C, len(members))
	for i, m := range members {
		changes[i] = &m.change
	}
	err := g.commit(ctx, changes)
	for _, m := range members {
		m.err = err
	}
	return err
}
