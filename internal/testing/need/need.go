// Package need skips tests on machines without the parts that they run against.
package need

import (
	"os"
	"slices"
	"strings"
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

// Package is Missing for packages of a registry, of which a run may leave out some: those that
// PARLEY_TEST_WITHOUT names, such as "npm frameworks".
func Package(t testing.TB, name, format string, args ...any) {
	t.Helper()
	if slices.Contains(strings.Fields(os.Getenv("PARLEY_TEST_WITHOUT")), name) {
		t.Skipf(format, args...)
	}
	Missing(t, format, args...)
}

// Root skips a test that only root can run. The rights are not a part that a machine lacks: the tests
// of the sandbox run again as an ordinary user, with every test required.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run this test")
	}
}
