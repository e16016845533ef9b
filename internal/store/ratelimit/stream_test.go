package ratelimit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// replica returns a store that exchanges counts until stop is called.
func (w *world) replica(t *testing.T, node int32) (s *ratelimit.Store, stop func()) {
	t.Helper()
	w.alive(t, node)
	s = ratelimit.New(dbtest.Pool(t, w.dsn), ratelimit.Options{Node: node})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := wait.Receive(t, "Run returns", done); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

// alive holds the lock of a node, as the node's process does.
func (w *world) alive(t *testing.T, node int32) (die func()) {
	t.Helper()
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock_shared(20561, $1)`, node); err != nil {
		t.Fatal(err)
	}
	die = sync.OnceFunc(func() {
		_ = conn.Conn().Close(context.Background())
		conn.Release()
	})
	t.Cleanup(die)
	return die
}

// hold opens a stream, or reports that the key has too many.
func hold(t *testing.T, s *ratelimit.Store, key string, most int) (release func(), ok bool) {
	t.Helper()
	release, err := s.Hold(t.Context(), key, most)
	if err != nil && !is(err, fault.ConcurrencyLimit) {
		t.Fatal(err)
	}
	return release, err == nil
}

func TestStreamsAreCountedOverReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here, _ := w.replica(t, 1)
	there, stop := w.replica(t, 2)
	const most = 3
	var releases []func()
	for range most {
		release, ok := hold(t, there, w.key, most)
		if !ok {
			t.Fatal("the first stream of a key is refused")
		}
		releases = append(releases, release)
	}
	if _, ok := hold(t, there, w.key, most); ok {
		t.Error("one more on the same replica")
	}
	if _, ok := hold(t, there, w.issue(t), most); !ok {
		t.Error("another key is refused")
	}
	wait.For(t, "the other replica counts the streams", func() bool {
		release, ok := hold(t, here, w.key, most)
		if ok {
			release()
		}
		return !ok
	})
	releases[0]()
	releases[0]() // a second call changes nothing
	wait.For(t, "the other replica has room again", func() bool {
		_, ok := hold(t, here, w.key, most)
		return ok
	})
	if _, ok := hold(t, here, w.key, most); ok {
		t.Error("a second release frees another place")
	}
	// A replica that stops frees the places of its streams for the replicas its clients move to.
	stop()
	for n := range 2 {
		wait.For(t, fmt.Sprintf("place %d of the stopped replica is free", n), func() bool {
			_, ok := hold(t, here, w.key, most)
			return ok
		})
	}
}

// Rejections reflect the current state: streams of a dead or frozen replica do not count.
func TestDeadReplicasHoldNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := ratelimit.New(w.pool, ratelimit.Options{Node: 1})
	die := w.alive(t, 2)
	w.alive(t, 3)
	publish := func(node int, life string) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), `INSERT INTO open_streams VALUES ($1, jsonb_build_object($2::text, 5), now() + $3::text::interval)
			ON CONFLICT (node) DO UPDATE SET expires_at = excluded.expires_at`, node, w.key, life); err != nil {
			t.Fatal(err)
		}
	}
	publish(2, "1 h")
	publish(3, "-1 s")
	const most = 5
	for range most { // it has not read the others' counts yet
		if _, ok := hold(t, s, w.key, most); !ok {
			t.Fatal("refused")
		}
	}
	if _, ok := hold(t, s, w.key, most); ok { // now it has
		t.Error("one more than it may hold here alone")
	}
	if _, ok := hold(t, s, w.key, 9); ok {
		t.Error("5 streams here and 5 elsewhere are below the limit of 9")
	}
	die()
	wait.For(t, "the streams of the dead replica do not count", func() bool {
		_, ok := hold(t, s, w.key, 9)
		return ok
	})
	for n := 6; n < 9; n++ {
		if _, ok := hold(t, s, w.key, 9); !ok {
			t.Errorf("stream %d: the frozen replica's streams count", n)
		}
	}
}

func TestOneReplicaIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	const most = 5
	for range 20 {
		held := make(chan func(), 50)
		var wg sync.WaitGroup
		for range cap(held) {
			wg.Go(func() {
				if release, ok := hold(t, s, w.key, most); ok {
					held <- release
				}
			})
		}
		wait.Until(t, "all goroutines", wg.Wait)
		if n := len(held); n != most {
			t.Fatalf("%d of %d are open at once", n, cap(held))
		}
		for range most {
			wait.Receive(t, "the held streams", held)()
		}
	}
}
