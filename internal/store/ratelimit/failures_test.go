package ratelimit_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/ratelimit"
)

func TestFailuresOfAnAddressAreForgivenEvenly(t *testing.T) {
	t.Parallel()
	f := ratelimit.NewFailures(4)
	now, a := time.Now(), netip.MustParseAddr("192.0.2.1")
	for range 4 {
		if wait := f.Wait(a, now); wait != 0 {
			t.Fatalf("wait %v", wait)
		}
		f.Count(a, now)
	}
	if wait := f.Wait(a, now); wait != 15*time.Second {
		t.Errorf("the fifth waits %v", wait)
	}
	if wait := f.Wait(netip.MustParseAddr("192.0.2.2"), now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	f.Count(a, now) // simultaneous with the others
	if wait := f.Wait(a, now); wait != 15*time.Second {
		t.Errorf("after one failure too many, the next one waits %v", wait)
	}
	now = now.Add(15 * time.Second)
	if wait := f.Wait(a, now); wait != 0 {
		t.Errorf("15 s later: %v", wait)
	}
	f.Count(a, now)
	if wait := f.Wait(a, now); wait != 15*time.Second {
		t.Errorf("and again: %v", wait)
	}
	none := ratelimit.NewFailures(0)
	if none.Count(a, now); none.Wait(a, now) != 0 {
		t.Error("no limit limits")
	}
}

func TestFailuresOfANetworkAreOneAddress(t *testing.T) {
	t.Parallel()
	f, now := ratelimit.NewFailures(1), time.Now()
	for _, c := range []struct {
		addr string
		free bool
	}{
		{"2001:db8::1", true}, {"2001:db8::ffff:1%eth0", false}, {"2001:db8:0:1::1", true}, {"192.0.2.1", true},
		{"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
	} {
		addr := netip.MustParseAddr(c.addr)
		if wait := f.Wait(addr, now); (wait == 0) != c.free {
			t.Errorf("%s waits %v", c.addr, wait)
		}
		f.Count(addr, now)
	}
	if wait := f.Wait(netip.Addr{}, now); wait != 0 {
		t.Errorf("no address: %v", wait)
	}
}

// A flood from many addresses does not exceed the memory limit.
func TestFailuresForgetAddressesInAFlood(t *testing.T) {
	t.Parallel()
	f, now := ratelimit.NewFailures(1), time.Now()
	for i := range 200_000 {
		f.Count(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if n := f.Addresses(); n > 1<<16 {
		t.Errorf("%d addresses are remembered", n)
	}
}
