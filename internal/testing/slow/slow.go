// Package slow excludes slow tests from go test -short.
package slow

import (
	"slices"
	"testing"
)

// Test skips a slow test under -short. why names what makes it slow. A fixture calls it for all
// tests that use the fixture; quick names the ones that run nevertheless.
func Test(t testing.TB, why string, quick ...string) {
	t.Helper()
	if testing.Short() && !slices.Contains(quick, t.Name()) {
		t.Skipf("slow: it %s; run without -short", why)
	}
}
