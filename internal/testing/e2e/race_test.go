//go:build race

package e2e_test

// raced says that the race detector watches, which costs memory of its own.
const raced = true
