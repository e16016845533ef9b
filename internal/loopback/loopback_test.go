package loopback_test

import (
	"testing"

	"github.com/parley-server/parley/internal/loopback"
)

func TestIsHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example.com": false, "x.localhost": false, "127.1": false, "0.0.0.0": false, "10.0.0.1": false,
		"localhost:80": false,
	} {
		if got := loopback.IsHost(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
