package callback

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Attempts is how often a report is tried, unless a user requests more.
const Attempts = 10

// schedule is the pause after each failed attempt but the last.
var schedule = [Attempts - 1]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour,
	3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// longest is the maximum delay of the next attempt that a receiver can request.
const longest = 24 * time.Hour

// retryPause returns the pause after an attempt, counted from 0; ok is false after the last. It
// varies by a fifth, so that reports that failed together are not retried together.
func retryPause(try int, asked time.Duration) (d time.Duration, ok bool) {
	if try >= len(schedule) {
		return 0, false
	}
	d = time.Duration(float64(schedule[try]) * (0.8 + 0.4*rand.Float64()))
	return max(d, min(asked, longest)), true
}

// retryAfter parses the header Retry-After, in seconds or as a date; 0 for none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
