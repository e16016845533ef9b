package workdir

import "time"

// tick is how much too early the clock may be by which a file system says when a file
// has changed.
const tick = 10 * time.Millisecond

// dropRecentTimes waits until a change of what is known will bear another time: two changes
// within one tick look like one.
func dropRecentTimes(all map[string]known) {
	var newest int64
	for _, k := range all {
		newest = max(newest, k.stamp.change)
	}
	time.Sleep(min(time.Until(time.Unix(0, newest).Add(tick)), tick)) // no longer where clocks were set back
}
