// Package egresstest has a DNS server that lies and a server that nobody must reach,
// for tests of what may be reached.
package egresstest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Zone is a DNS server. Each question takes the next of the answers of its name; the
// last one stays.
type Zone struct {
	mu    sync.Mutex
	names map[string][][]netip.Addr
	asked map[question]int
	addr  string
}

// question is for the addresses of a name of one type; those of the other come apart,
// and in any order.
type question struct {
	name string
	typ  uint16
}

const typeA, typeAAAA = 1, 28

// Serve answers on an address such as 127.0.0.1:0 until the test ends.
func Serve(t testing.TB, addr string, names map[string][][]netip.Addr) *Zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	z := &Zone{names: names, asked: make(map[question]int), addr: conn.LocalAddr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if _, err := conn.WriteTo(z.answer(buf[:n]), from); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return z
}

// Resolver asks the zone.
func (z *Zone) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", z.addr)
	}}
}

// Questions is how often a name was looked up.
func (z *Zone) Questions(name string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked[question{name, typeA}]
}

// answer speaks as much DNS as a resolver of Go needs.
func (z *Zone) answer(q []byte) []byte {
	var labels []string
	at := 12
	for q[at] != 0 {
		labels = append(labels, string(q[at+1:at+1+int(q[at])]))
		at += 1 + int(q[at])
	}
	name := strings.ToLower(strings.Join(labels, "."))
	typ := binary.BigEndian.Uint16(q[at+1:])
	asked := question{name, typ}

	z.mu.Lock()
	defer z.mu.Unlock()
	rounds := z.names[name]
	var addrs []netip.Addr
	if len(rounds) > 0 {
		addrs = rounds[min(z.asked[asked], len(rounds)-1)]
	}
	z.asked[asked]++
	var records []byte
	count := 0
	for _, a := range addrs {
		if a.Is4() && typ != typeA || a.Is6() && typ != typeAAAA {
			continue
		}
		count++
		records = append(records, 0xc0, 12)
		records = binary.BigEndian.AppendUint16(records, typ)
		records = append(records, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
		records = binary.BigEndian.AppendUint16(records, uint16(a.BitLen()/8))
		records = append(records, a.AsSlice()...)
	}
	out := append([]byte{q[0], q[1], 0x84, 0, 0, 1, 0, byte(count), 0, 0, 0, 0}, q[12:at+5]...)
	if len(rounds) == 0 {
		out[3] = 3 // NXDOMAIN
	}
	return append(out, records...)
}

// Addrs reads addresses.
func Addrs(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}
