// Package egresstest has a DNS server with false answers and a server that no request must reach,
// for tests of the egress policy.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/parley-server/parley/internal/testing/wait"
)

// Zone is a DNS server. Each question gets the next answer for its name; the last one is repeated.
type Zone struct {
	mu    sync.Mutex
	names map[string][][]netip.Addr
	asked map[question]int
	addr  string
}

// question asks for the addresses of a name of one type. A resolver asks for both types in any
// order.
type question struct {
	name string
	typ  dnsmessage.Type
}

// Serve responds on an address such as 127.0.0.1:0 until the test ends.
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
	t.Cleanup(func() { conn.Close(); wait.Until(t, "all goroutines", wg.Wait) })
	return z
}

// Resolver returns a resolver that uses the zone.
func (z *Zone) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", z.addr)
	}}
}

// Questions returns how often a name was looked up.
func (z *Zone) Questions(name string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked[question{name, dnsmessage.TypeA}]
}

// answer returns the reply to a query of Go's resolver.
func (z *Zone) answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	addrs, known := z.lookup(question{strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")), q.Type})
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		var body dnsmessage.ResourceBody
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			body = &dnsmessage.AResource{A: a.As4()}
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: body})
	}
	reply, _ := m.Pack()
	return reply
}

// lookup counts a question and returns its next addresses. known reports whether the name exists.
func (z *Zone) lookup(q question) (addrs []netip.Addr, known bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	rounds := z.names[q.name]
	if len(rounds) > 0 {
		addrs = rounds[min(z.asked[q], len(rounds)-1)]
	}
	z.asked[q]++
	return addrs, len(rounds) > 0
}

// Addrs parses addresses.
func Addrs(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}
