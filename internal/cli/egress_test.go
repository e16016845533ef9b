package cli

import (
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/client"
)

// TestEgressRowOutsideASession renders a request of a check of a tool server.
func TestEgressRowOutsideASession(t *testing.T) {
	t.Parallel()
	if row := egressRow(client.EgressRequest{SessionID: uuid.Nil.String()}); row[1] != "none" {
		t.Errorf("the session of a request outside a session is %s", row[1])
	}
}
