//go:build race

package e2e_test

// raced is true if the race detector runs, which uses memory of its own.
const raced = true
