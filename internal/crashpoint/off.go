//go:build !faultpoints

// Package crashpoint names the moments at which a process may die or stall without a promise being
// broken. The chaos harness kills a process at each of them. A point does nothing unless the program
// is built with the tag faultpoints.
package crashpoint

// Hit marks a point. The name says which operation it interrupts, and where.
func Hit(string) {}
