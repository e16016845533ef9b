package main

import (
	"cmp"
	"slices"
	"time"
)

// percentile is the nearest-rank percentile; it sorts all. 0 for no values.
func percentile[T cmp.Ordered](all []T, p float64) T {
	if len(all) == 0 {
		var zero T
		return zero
	}
	slices.Sort(all)
	i := int(float64(len(all))*p/100+0.5) - 1
	return all[min(max(i, 0), len(all)-1)]
}

// median of the rounds: the lower middle one, so that it is a value that was measured.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
