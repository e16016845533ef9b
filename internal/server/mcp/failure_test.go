package mcp

import (
	"testing"

	"github.com/parley-server/parley/internal/event"
)

// TestEveryFailureHasAWayOut: none is a code alone.
func TestEveryFailureHasAWayOut(t *testing.T) {
	t.Parallel()
	for _, code := range event.Codes {
		if waysOut[code] == "" {
			t.Errorf("%s has no hint", code)
		}
	}
}
