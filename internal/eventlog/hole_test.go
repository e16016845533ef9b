package eventlog_test

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
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestDroppingLeavesNoHole drops partitions while readers with any cursor read from any replica.
// Each reader gets every row after its cursor, or the first of these rows and then ErrGone. ErrGone
// occurs only if a turn that the reader needs is past the replay window.
func TestDroppingLeavesNoHole(t *testing.T) {
	t.Parallel()
	slow.Test(t, "races many writers")
	w := sessiontest.New(t)
	replicas := []*sessiontest.Replica{w.Still(t), w.Still(t), w.Still(t)}
	w.Days(t, 9, 8, 7, 6, 5, 4, 3)
	sessions := []*sessiontest.Past{
		w.Past(t, replicas[0], 400, 8, 7, 6, 5, 4), w.Past(t, replicas[0], 30, 8, 7, 4), w.Past(t, replicas[0], 1500, 7, 5),
		w.Past(t, replicas[0], 7, 6),
	}
	var mu sync.Mutex
	expired := make(map[uuid.UUID]int64) // by session, the end of the newest turn outside the window
	var victims []func()
	for _, p := range sessions {
		for i, turn := range p.Turns {
			last := p.Want[(i+1)*len(p.Want)/len(p.Turns)-1].Seq
			victims = append(victims, func() {
				mu.Lock()
				expired[p.From.Session] = max(expired[p.From.Session], last)
				mu.Unlock()
				w.Expire(t, turn)
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
				from := p.From
				if at := rand.N(len(p.Want) + 10); at < len(p.Want) {
					from.Seq = p.Want[at].Seq + int64(rand.N(3)-1)
				}
				last := p.Want[len(p.Want)-1].Seq
				var got []event.Event
				var err error
				if i%3 == 0 {
					got, err = replicas[i/3].Until(t.Context(), from, last)
				} else {
					got, err = replicas[i/3].Stored(t.Context(), from)
				}
				want := p.Want[sort.Search(len(p.Want), func(i int) bool { return p.Want[i].Seq > from.Seq }):]
				mu.Lock()
				needed := expired[p.From.Session] > from.Seq
				mu.Unlock()
				switch {
				case err == nil && slices.Equal(seqs(got), seqs(want)):
					whole.Add(1)
				case errors.Is(err, eventlog.ErrGone) && needed && slices.Equal(seqs(got), seqs(want[:len(got)])):
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
		wait.For(t, "somebody reads in between", func() bool { return whole.Load()+gone.Load() > seen+10 || t.Failed() })
		expire()
		var droppers sync.WaitGroup
		for _, s := range replicas {
			droppers.Go(func() {
				done, err := s.ApplyRetention(t.Context())
				if err != nil {
					t.Errorf("retain: %v", err)
				}
				dropped.Add(int64(len(done.Partitions)))
			})
		}
		wait.Until(t, "the droppers", droppers.Wait)
	}
	seen := gone.Load()
	wait.For(t, "somebody comes too late", func() bool { return gone.Load() > seen+10 || t.Failed() })
	stop()
	wait.Until(t, "the readers", readers.Wait)
	if w.Deltas(t) != 0 || dropped.Load() != 7 {
		t.Errorf("%d partitions are left, %d were dropped", w.Deltas(t), dropped.Load())
	}
	for _, p := range sessions {
		if n := w.Count(t, `SELECT count(*) FROM events WHERE session_id = $1 AND delta`, p.From.Session); n != 0 {
			t.Errorf("%d deltas are left", n)
		}
		if n := w.Count(t, `SELECT count(*) FROM events WHERE session_id = $1`, p.From.Session); n == 0 {
			t.Error("records were dropped")
		}
		if got, err := replicas[0].Stored(t.Context(), p.From); !errors.Is(err, eventlog.ErrGone) {
			t.Errorf("from the beginning: %d rows, %v", len(got), err)
		}
	}
	t.Logf("%d readers had everything, %d got ErrGone", whole.Load(), gone.Load())
}

// A hole is detected at any place: after the cursor, under the cursor, and between two pages.
func TestAHoleIsNoticedWhereverItIs(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := w.Still(t)
	w.Days(t, 5, 4)
	p := w.Past(t, s, 1000, 5)
	read := func(at int) (int, error) {
		from := p.From
		from.Seq = p.Want[at].Seq
		got, err := s.Stored(t.Context(), from)
		return len(got), err
	}
	w.Expire(t, p.Turns...)
	pages := 0
	for evs, err := range s.After(t.Context(), p.From) {
		if pages++; pages == 1 {
			if err != nil || len(evs) >= len(p.Want) {
				t.Fatalf("the first page has %d rows, %v", len(evs), err)
			}
			if done := sessiontest.Retain(t, s); len(done.Partitions) != 2 {
				t.Fatalf("dropped %v", done.Partitions)
			}
			continue
		}
		if !errors.Is(err, eventlog.ErrGone) || evs != nil || pages != 2 {
			t.Errorf("page %d, after rows were dropped: %d rows, %v", pages, len(evs), err)
		}
	}
	for what, at := range map[string]int{"after a record": 4, "after a delta": 5, "far on": 996, "before the end": 998} {
		if n, err := read(at); !errors.Is(err, eventlog.ErrGone) || n != 0 {
			t.Errorf("%s: %d rows, %v", what, n, err)
		}
	}
	if n, err := read(999); err != nil || n != 0 {
		t.Errorf("after everything: %d rows, %v", n, err)
	}
}

func seqs(evs []event.Event) []int64 {
	list := make([]int64, len(evs))
	for i, ev := range evs {
		list[i] = ev.Seq
	}
	return list
}
