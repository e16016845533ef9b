package session_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a sessiontest.World with helpers for these tests.
type world struct{ *sessiontest.World }

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{sessiontest.New(t)}
}
