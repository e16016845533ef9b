package main

import (
	"cmp"
	"slices"
	"time"
)

// percentile returns the nearest-rank percentile, or 0 for no values; it sorts all.
func percentile[T cmp.Ordered](all []T, p float64) T {
	if len(all) == 0 {
		var zero T
		return zero
	}
	slices.Sort(all)
	i := int(float64(len(all))*p/100+0.5) - 1
	return all[min(max(i, 0), len(all)-1)]
}

// median returns the lower middle value of the rounds, which is a measured value.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
