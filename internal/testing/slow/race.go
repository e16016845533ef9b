//go:build race

package slow

// Race is true if the race detector runs: it needs memory of its own, and makes loops over bytes
// about ten times slower.
const Race = true
