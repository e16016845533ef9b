package provider

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns how long a provider wants the client to wait: retry-after-ms first, because it
// is more precise, then Retry-After in seconds or as a date. It is zero if neither can be parsed,
// and at most a day.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := parseWait(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	after := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := parseWait(after, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(after); err == nil {
		return min(max(at.Sub(now), 0), longestWait)
	}
	return 0
}

const longestWait = 24 * time.Hour

// parseWait parses a number of units, which some providers send with a fraction.
func parseWait(s string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) {
		return 0, false
	}
	n = max(n, 0) * float64(unit)
	if n > float64(longestWait) {
		return longestWait, true
	}
	return time.Duration(n), true
}
