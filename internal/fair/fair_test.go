package fair_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func workspaces(n int) []uuid.UUID {
	list := make([]uuid.UUID, n)
	for i := range list {
		list[i] = uuid.Must(uuid.NewV7())
	}
	return list
}

// fill acquires as many places as a workspace gets.
func fill(p *fair.Places, w uuid.UUID) (releases []func()) {
	for {
		release, ok := p.TryAcquire(w)
		if !ok {
			return releases
		}
		releases = append(releases, release)
	}
}

func TestNewcomersFindAPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		places int
		held   []int // by each workspace in turn, taking all it gets
	}{
		{1, []int{1, 0}},
		{2, []int{1, 1, 0}},
		{4, []int{3, 1, 0}},
		{16, []int{12, 3, 1, 0}},
		{50, []int{38, 9, 2, 1, 0}},
		{100, []int{75, 19, 5, 1, 0}},
	} {
		p := fair.New(tt.places)
		var held []int
		for _, w := range workspaces(len(tt.held)) {
			held = append(held, len(fill(p, w)))
		}
		if !slices.Equal(held, tt.held) {
			t.Errorf("%d places: %d, want %d", tt.places, held, tt.held)
		}
	}
}

func TestWaitersAreServedRoundRobin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fair.New(1)
		w := workspaces(3)
		release, _ := p.TryAcquire(w[0])
		var served []int
		var running sync.WaitGroup
		for _, i := range []int{0, 0, 0, 1, 1, 2} {
			running.Go(func() {
				leave, err := p.Acquire(t.Context(), w[i])
				if err != nil {
					t.Error(err)
					return
				}
				served = append(served, i) // one place: never two at once
				leave()
			})
			synctest.Wait() // in this order
		}
		release()
		release() // a second call frees nothing
		wait.Until(t, "the running functions", running.Wait)
		if want := []int{0, 1, 2, 0, 1, 0}; !slices.Equal(served, want) {
			t.Errorf("served %d, want %d", served, want)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fair.New(1)
		w := workspaces(2)
		release, _ := p.TryAcquire(w[0])
		ctx, cancel := context.WithCancelCause(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := p.Acquire(ctx, w[1]); !errors.Is(err, errGone) {
				t.Errorf("Acquire: %v", err)
			}
		})
		synctest.Wait()
		cancel(errGone)
		wait.Until(t, "the running functions", running.Wait)
		release()
		if _, ok := p.TryAcquire(w[0]); !ok {
			t.Error("the place went to a waiter that had given up")
		}
	})
}

var errGone = errors.New("gone")

func TestAcquireAnyPrefersTheFewestHeld(t *testing.T) {
	t.Parallel()
	p := fair.New(16)
	w := workspaces(2)
	p.TryAcquire(w[0])
	if got, _, ok := p.AcquireAny(w); !ok || got != w[1] {
		t.Errorf("AcquireAny = %s %t, want the workspace without a place", got, ok)
	}
	if got, _, ok := p.AcquireAny(w); !ok || got != w[0] {
		t.Errorf("AcquireAny = %s %t, want the first of equals", got, ok)
	}
}

// TestPlacesNeverRunOver acquires and releases in any order, with waiters that give up, and counts
// the held places.
func TestPlacesNeverRunOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "places")
		order := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 40).Draw(rt, "workspaces")
		gaveUp := rapid.SliceOfN(rapid.Bool(), len(order), len(order)).Draw(rt, "gave up")
		synctest.Test(t, func(t *testing.T) {
			p, w := fair.New(n), workspaces(4)
			var mu sync.Mutex
			held, most := 0, 0
			var running sync.WaitGroup
			for i, at := range order {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				running.Go(func() {
					leave, err := p.Acquire(ctx, w[at])
					if err != nil {
						return
					}
					mu.Lock()
					held++
					most = max(most, held)
					mu.Unlock()
					time.Sleep(time.Second) // on the bubble's clock
					mu.Lock()
					held--
					mu.Unlock()
					leave()
				})
				if gaveUp[i] {
					running.Go(cancel)
				}
			}
			wait.Until(t, "the running functions", running.Wait)
			if most > n {
				t.Errorf("%d places were held of %d", most, n)
			}
			if got, want := len(fill(p, w[0])), len(fill(fair.New(n), w[0])); got != want {
				t.Errorf("%d places are free afterwards, want %d", got, want)
			}
		})
	})
}
