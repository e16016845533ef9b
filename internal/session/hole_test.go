package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
)

// TestDroppingLeavesNoHole drops partitions under readers that come with any cursor to
// any replica. Each gets every row after its cursor, or a beginning of them and ErrGone;
// ErrGone only where a turn that it needs is past the replay window.
func TestDroppingLeavesNoHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []*session.Store{w.still(t), w.still(t), w.still(t)}
	w.days(t, 9, 8, 7, 6, 5, 4, 3)
	sessions := []*past{
		w.past(t, replicas[0], 400, 8, 7, 6, 5, 4), w.past(t, replicas[0], 30, 8, 7, 4), w.past(t, replicas[0], 1500, 7, 5), w.past(t, replicas[0], 7, 6),
	}
	var mu sync.Mutex
	expired := make(map[uuid.UUID]int64) // the end of the newest turn that is out of the window, by session
	var victims []func()
	for _, p := range sessions {
		for i, turn := range p.turns {
			last := p.want[(i+1)*len(p.want)/len(p.turns)-1].Seq
			victims = append(victims, func() {
				mu.Lock()
				expired[p.from.Session] = max(expired[p.from.Session], last)
				mu.Unlock()
				w.expire(t, turn)
			})
		}
	}
	var whole, gone, dropped atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for i := range 9 {
		readers.Go(func() {
			for ctx.Err() == nil {
				p := sessions[rand.N(len(sessions))]
				from := p.from
				if at := rand.N(len(p.want) + 10); at < len(p.want) {
					from.Seq = p.want[at].Seq + int64(rand.N(3)-1)
				}
				last := p.want[len(p.want)-1].Seq
				var got []event.Event
				var err error
				if i%3 == 0 {
					got, err = until(t.Context(), replicas[i/3], from, last)
				} else {
					got, err = after(t.Context(), replicas[i/3], from)
				}
				want := p.want[sort.Search(len(p.want), func(i int) bool { return p.want[i].Seq > from.Seq }):]
				mu.Lock()
				needed := expired[p.from.Session] > from.Seq
				mu.Unlock()
				switch {
				case err == nil && slices.Equal(seqs(got), seqs(want)):
					whole.Add(1)
				case errors.Is(err, session.ErrGone) && needed && slices.Equal(seqs(got), seqs(want[:len(got)])):
					gone.Add(1)
				default:
					t.Errorf("after %d: %d of %d rows, a turn of them is out of the window: %v, %v", from.Seq, len(got), len(want), needed, err)
					return
				}
			}
		})
	}
	rand.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for _, expire := range victims {
		seen := whole.Load() + gone.Load()
		await(t, "somebody reads in between", func() bool { return whole.Load()+gone.Load() > seen+10 || t.Failed() })
		expire()
		var droppers sync.WaitGroup
		for _, s := range replicas {
			droppers.Go(func() {
				done, err := s.Retain(t.Context())
				if err != nil {
					t.Errorf("retain: %v", err)
				}
				dropped.Add(int64(len(done.Partitions)))
			})
		}
		droppers.Wait()
	}
	seen := gone.Load()
	await(t, "somebody comes too late", func() bool { return gone.Load() > seen+10 || t.Failed() })
	stop()
	readers.Wait()
	if w.deltas(t) != 0 || dropped.Load() != 7 {
		t.Errorf("%d partitions are left, %d were dropped", w.deltas(t), dropped.Load())
	}
	for _, p := range sessions {
		if n := w.count(t, `SELECT count(*) FROM events WHERE session_id = $1 AND delta`, p.from.Session); n != 0 {
			t.Errorf("%d deltas are left", n)
		}
		if n := w.count(t, `SELECT count(*) FROM events WHERE session_id = $1`, p.from.Session); n == 0 {
			t.Error("records were dropped")
		}
		if got, err := after(t.Context(), replicas[0], p.from); !errors.Is(err, session.ErrGone) {
			t.Errorf("from the beginning: %d rows, %v", len(got), err)
		}
	}
	t.Logf("%d readers had everything, %d were told that it is gone", whole.Load(), gone.Load())
}

// A hole is noticed wherever it is: after the cursor, under the cursor, between two
// pages.
func TestAHoleIsNoticedWhereverItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.still(t)
	w.days(t, 5, 4)
	p := w.past(t, s, 1000, 5)
	read := func(at int) (int, error) {
		from := p.from
		from.Seq = p.want[at].Seq
		got, err := after(t.Context(), s, from)
		return len(got), err
	}
	w.expire(t, p.turns...)
	pages := 0
	for evs, err := range s.After(t.Context(), p.from) {
		if pages++; pages == 1 {
			if err != nil || len(evs) >= len(p.want) {
				t.Fatalf("the first page has %d rows, %v", len(evs), err)
			}
			if done := retain(t, s); len(done.Partitions) != 2 {
				t.Fatalf("dropped %v", done.Partitions)
			}
			continue
		}
		if !errors.Is(err, session.ErrGone) || evs != nil || pages != 2 {
			t.Errorf("page %d of what was dropped meanwhile: %d rows, %v", pages, len(evs), err)
		}
	}
	for what, at := range map[string]int{"after a record": 4, "after a delta": 5, "far on": 996, "before the end": 998} {
		if n, err := read(at); !errors.Is(err, session.ErrGone) || n != 0 {
			t.Errorf("%s: %d rows, %v", what, n, err)
		}
	}
	if n, err := read(999); err != nil || n != 0 {
		t.Errorf("after everything: %d rows, %v", n, err)
	}
}
