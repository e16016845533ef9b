package event_test

import (
	"testing"

	"github.com/parley-server/parley/internal/event"
)

// TestKindsOfLaterReleasesStayInTheLog checks that a replica does not send events that it does not
// know: during a rolling deploy, newer replicas write them.
func TestKindsOfLaterReleasesStayInTheLog(t *testing.T) {
	t.Parallel()
	if event.Kind("of_a_later_release").Public() {
		t.Error("an unknown kind is sent to clients")
	}
}
