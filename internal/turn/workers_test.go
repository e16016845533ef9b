package turn_test

import (
	"testing"

	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// TestMorePlacesThanJobs starts a process with more places than River's workers.
func TestMorePlacesThanJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	r := w.replica(t, func(c *turn.Config) { c.Workers = 20_000 })
	if got := text(read(t, r, w.start(t, r, "hello"))); got != "hi" {
		t.Errorf("text %q", got)
	}
}
