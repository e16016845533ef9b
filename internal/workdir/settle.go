package workdir

import (
	"context"
	"time"
)

// tick is how much too early the clock may be by which a file system says when a file
// has changed.
const tick = 10 * time.Millisecond

// settle waits until a change of what is known will bear another time: two changes
// within one tick look like one.
func settle(ctx context.Context, all map[string]known) error {
	var newest int64
	for _, k := range all {
		newest = max(newest, k.stamp.change)
	}
	wait := min(time.Until(time.Unix(0, newest).Add(tick)), tick) // also where clocks were set back
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
