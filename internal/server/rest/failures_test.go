package rest_test

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/testing/wait"
)

// unknown is a well-formed key that is not valid.
func (s *service) unknown(t *testing.T) string {
	t.Helper()
	key := s.Issue(t, s.Workspace, apikey.All...)
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, key[4:12]); err != nil {
		t.Fatal(err)
	}
	return key
}

func TestUnknownKeysAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Failures = ratelimit.NewFailures(3) })
	list := call{path: "sessions"}
	if r := s.get(t, list); r.status != 200 {
		t.Fatalf("a valid key: %d", r.status)
	}
	bad := list
	bad.key = s.unknown(t)
	before := s.link.count("APIKeyByID")
	for n, want := range []int{401, 401, 401, 429, 429} {
		r := s.get(t, bad)
		if r.status != want || want == 429 && (r.Error.Code != "RATE_LIMITED" || r.header.Get("Retry-After") == "") {
			t.Errorf("unknown key %d: %d %s", n+1, r.status, r.text)
		}
	}
	if reads := s.link.count("APIKeyByID") - before; reads != 3 {
		t.Errorf("%d database reads for unknown keys, want 3", reads)
	}
	typo := list
	typo.key = strings.Replace(s.Key, s.Key[20:22], "zz", 1)
	if r := s.get(t, typo); r.status != 401 { // without reading the database
		t.Errorf("a malformed key: %d", r.status)
	}
	if r := s.get(t, list); r.status != 200 {
		t.Errorf("a key that was valid before, from the same address: %d", r.status)
	}
	fresh := list
	fresh.key = s.Issue(t, s.Workspace, apikey.All...)
	if r := s.get(t, fresh); r.status != 429 { // the key could be a guess
		t.Errorf("a new key: %d", r.status)
	}
}

func TestValidKeysUseUpNoFailures(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Failures = ratelimit.NewFailures(1) })
	key := s.Issue(t, s.Workspace, apikey.All...)
	var wg sync.WaitGroup
	for range 16 { // most of them arrive before the key is cached
		wg.Go(func() {
			if r := s.get(t, call{path: "sessions", key: key}); r.status != 200 {
				t.Errorf("%d %s", r.status, r.text)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
}

// TestFailuresBehindAProxyAreTheClients checks that only a configured proxy can name the client of
// a request.
func TestFailuresBehindAProxyAreTheClients(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trusted string
		second  int // the status of another client's failure
	}{
		"configured": {"127.0.0.0/8", 401}, "not configured": {"192.0.2.0/24", 429},
	} {
		s := start(t, func(cfg *server.Config) {
			cfg.Failures, cfg.TrustedProxies = ratelimit.NewFailures(1), []netip.Prefix{netip.MustParsePrefix(c.trusted)}
		})
		bad := call{path: "sessions", key: s.unknown(t)}
		for _, try := range []struct {
			forwarded string
			want      int
		}{{"198.51.100.1", 401}, {"6.6.6.6, 198.51.100.1, 127.0.0.2", 429}, {"198.51.100.2:4711", c.second}} {
			bad.header = []string{"X-Forwarded-For", try.forwarded}
			if r := s.get(t, bad); r.status != try.want {
				t.Errorf("%s, forwarded for %s: %d", name, try.forwarded, r.status)
			}
		}
	}
}
