package wait_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-server/parley/internal/testing/wait"
)

func TestWaitsReturnResults(t *testing.T) {
	t.Parallel()
	c := make(chan int, 1)
	c <- 1
	if got := wait.Receive(t, "a number", c); got != 1 {
		t.Errorf("received %d", got)
	}
	if got := wait.Result(t, "a number", func() int { return 2 }); got != 2 {
		t.Errorf("the result is %d", got)
	}
	var wg sync.WaitGroup
	ended := false
	wg.Go(func() { ended = true })
	if wait.Until(t, "the goroutine", wg.Wait); !ended {
		t.Error("returned before the goroutine ended")
	}
}

// hung is a test that records its failure and continues.
type hung struct {
	testing.TB
	failed chan struct{}
}

func (hung) Helper()                 {}
func (h hung) Fatalf(string, ...any) { close(h.failed) }

func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := hung{t, make(chan struct{})}
		wait.Receive(h, "nothing", make(chan int))
		<-h.failed
		h = hung{t, make(chan struct{})}
		wait.Until(h, "nothing", func() { <-release })
		<-h.failed
		close(release)
	})
}
