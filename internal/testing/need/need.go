// Package need skips tests on machines without the parts that they run against.
package need

import (
	"os"
	"testing"
)

// All reports whether every test must run: PARLEY_TEST_REQUIRE is all.
func All() bool { return os.Getenv("PARLEY_TEST_REQUIRE") == "all" }

// Missing skips a test whose dependency is not available, or fails it if every test must run. The
// message names the dependency.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if All() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
