package ratelimit

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

// maxAddresses limits the addresses that Failures remembers: a few megabytes.
const maxAddresses = 1 << 16

// Failures limits how often an address may present invalid API keys, each of which costs a database
// read. It counts only in this process. Addresses start with a whole quota, which refills evenly. A
// nil Failures has no limit.
type Failures struct {
	perMinute int

	mu     sync.Mutex
	fullAt map[netip.Prefix]time.Time // when an address will have its whole quota again
}

// NewFailures allows each address this many failures a minute; 0 means no limit.
func NewFailures(perMinute int) *Failures {
	if perMinute <= 0 {
		return nil
	}
	return &Failures{perMinute: perMinute, fullAt: make(map[netip.Prefix]time.Time)}
}

// PerMinute returns the quota of an address, 0 for none.
func (f *Failures) PerMinute() int {
	if f == nil {
		return 0
	}
	return f.perMinute
}

// Wait returns how long an address must wait before it may fail again; 0: it may.
func (f *Failures) Wait(addr netip.Addr, now time.Time) time.Duration {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	full := f.fullAt[networkOf(addr)].Add(f.forgiveTime())
	if full.Before(now) {
		return 0
	}
	return max(0, full.Sub(now)-time.Minute)
}

// Count counts a failure of an address. Simultaneous requests can exceed the quota; they cost the
// address no more than the whole quota.
func (f *Failures) Count(addr netip.Addr, now time.Time) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := networkOf(addr)
	full := f.fullAt[at]
	if full.Before(now) {
		full = now
	}
	if len(f.fullAt) >= maxAddresses {
		f.evictAddresses(now)
	}
	f.fullAt[at] = full.Add(min(f.forgiveTime(), now.Add(time.Minute).Sub(full)))
}

// forgiveTime is the time in which one failure is forgiven.
func (f *Failures) forgiveTime() time.Duration { return time.Minute / time.Duration(f.perMinute) }

// evictAddresses forgets the addresses with their whole quota, and all addresses if that is not
// enough: limits by address cannot stop a flood from 65,536 networks.
func (f *Failures) evictAddresses(now time.Time) {
	maps.DeleteFunc(f.fullAt, func(_ netip.Prefix, full time.Time) bool { return !full.After(now) })
	if len(f.fullAt) >= maxAddresses {
		clear(f.fullAt)
	}
}

// networkOf returns the unit that is limited: an IPv4 address, or an IPv6 /64, which belongs to one
// customer.
func networkOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // the zero address gives the zero prefix
	return p
}
