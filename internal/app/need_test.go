package app_test

import (
	"os"
	"testing"
	"time"
)

// missing skips a test whose dependency is not installed, or fails it if no test may be skipped.
func missing(t *testing.T, part string) {
	t.Helper()
	if os.Getenv("PARLEY_TEST_REQUIRE") == "all" {
		t.Fatalf("%s is not installed", part)
	}
	t.Skipf("%s is not installed", part)
}

// await polls a condition of another process, which sends no signal.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
