package workdir

import "time"

// tick is the maximum lag of the clock that a file system uses for the times of changes.
const tick = 10 * time.Millisecond

// dropRecentTimes waits until a further change of the known files would get another time: two
// changes within one tick look like one.
func dropRecentTimes(all map[string]known) {
	var newest int64
	for _, k := range all {
		newest = max(newest, k.stamp.change)
	}
	time.Sleep(min(time.Until(time.Unix(0, newest).Add(tick)), tick)) // no longer, even if the clock was set back
}
