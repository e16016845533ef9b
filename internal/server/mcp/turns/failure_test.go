package turns

import (
	"testing"

	"github.com/parley-server/parley/internal/event"
)

// TestEveryFailureHasAWayOut checks that every failure has a remedy besides its code.
func TestEveryFailureHasAWayOut(t *testing.T) {
	t.Parallel()
	for _, code := range event.Codes {
		if waysOut[code] == "" {
			t.Errorf("%s has no hint", code)
		}
	}
}
