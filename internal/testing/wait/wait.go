// Package wait contains the waits of tests. A wait that does not end in time fails its test, so
// that no test hangs until the timeout of its package.
package wait

import (
	"testing"
	"time"
)

// Limit is the longest wait. It is long enough for a busy machine and the race detector.
const Limit = time.Minute

// workLimit is the longest wait for the end of concurrent work, which takes longer than one signal.
const workLimit = 5 * time.Minute

// interval is the time between two checks of a condition.
const interval = 10 * time.Millisecond

// For polls a condition that sends no signal until it holds. what names the condition.
func For(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(Limit)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", Limit, what)
		case <-tick.C:
		}
	}
}

// Receive returns the next value of c. what names the value.
func Receive[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	return receive(t, what, c, Limit)
}

func receive[T any](t testing.TB, what string, c <-chan T, limit time.Duration) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		t.Fatalf("not within %v: %s", limit, what)
	}
	return v
}

// Until returns when f, such as the Wait of a sync.WaitGroup, has returned. what names the event.
func Until(t testing.TB, what string, f func()) {
	t.Helper()
	Result(t, what, func() struct{} { f(); return struct{}{} })
}

// Result returns the result of f, such as the Wait of an errgroup.Group. what names the event.
func Result[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	c := make(chan T, 1)
	go func() { c <- f() }()
	return receive(t, what, c, workLimit)
}
