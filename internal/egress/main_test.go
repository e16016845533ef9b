package egress_test

import (
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
)

func TestMain(m *testing.M) {
	log.SetOutput(&logged)
	goleak.VerifyTestMain(m)
}

func guard(t testing.TB, cfg egress.Config) *egress.Guard {
	t.Helper()
	g, err := egress.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// quiet is the log of servers whose handshakes are expected to fail.
var quiet = log.New(io.Discard, "", 0)
