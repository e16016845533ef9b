package egress_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/wait"
)

const a, txt, aaaa = 1, 16, 28

// packet queries a name whose labels may contain anything but a dot.
func packet(name string, kind uint16) []byte { return asks(strings.Split(name, "."), kind) }

func asks(labels []string, kind uint16) []byte {
	p := []byte{0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, l := range labels {
		p = append(append(p, byte(len(l))), l...)
	}
	return binary.BigEndian.AppendUint16(append(p, 0), kind)[: len(p)+3 : len(p)+3]
}

// resolver serves the names of a run until the test ends, and returns its address.
func resolver(t testing.TB, r *egress.Run) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- r.ServeDNS(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.Receive(t, "the end", ended); err != nil {
			t.Error(err)
		}
	})
	return c.LocalAddr().String()
}

// ask sends a query of class IN.
func ask(t testing.TB, r *egress.Run, question []byte) []byte {
	return r.Lookup(t.Context(), append(question, 0, 1))
}

// TestResolversUnderstand resolves names with Go's own resolver, which adds EDNS.
func TestResolversUnderstand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	at := resolver(t, w.run(t, egress.RunConfig{Hosts: []string{"*.wild.test", "plain.test"}}))
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", at)
	}}
	for i, name := range []string{"api.test.", "www.wild.test.", "plain.test."} {
		got, err := r.LookupNetIP(t.Context(), "ip", name)
		want := []netip.Addr{netip.AddrFrom4([4]byte{127, 1, 0, byte(i + 1)})}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"evil.test.", "other.api.test.", "wild.test.", "localhost.example.", "1.0.1.127.in-addr.arpa."} {
		got, err := r.LookupNetIP(t.Context(), "ip", name)
		if dns, ok := errors.AsType[*net.DNSError](err); !ok || !dns.IsNotFound {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := r.LookupTXT(t.Context(), "api.test."); err == nil {
		t.Errorf("TXT: %v", got)
	}
}

// TestNamesThatDoNotExist checks that a program's query is not forwarded, and that spelling does
// not matter.
func TestNamesThatDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Hosts: []string{"api.test", "example.com:8443", "plain.example:80", "*.wild.test"}})
	const none, nothing, malformed, unhandled = 3, 0, 1, 4
	long := strings.Repeat("a", 63)
	for name, c := range map[string]struct {
		packet []byte
		code   byte
	}{
		"a listed host":             {packet("api.test", a), nothing},
		"in other letters":          {packet("API.Test", a), nothing},
		"its IPv6 addresses":        {packet("api.test", aaaa), nothing},
		"its text":                  {packet("api.test", txt), nothing},
		"a long label":              {asks([]string{long + "a"}, a), malformed},
		"a subdomain":               {packet("data.api.test", txt), none},
		"a long one":                {packet(long+"."+long+"."+long+".api.test", txt), none},
		"an unlisted host":          {packet("evil.test", a), none},
		"one that ends the same":    {packet("xapi.test", a), none},
		"one listed for a port":     {packet("example.com", a), none},
		"its text over http":        {packet("plain.example", txt), nothing},
		"a wildcard's own domain":   {packet("wild.test", a), none},
		"the wildcard":              {packet("*.wild.test", a), none},
		"a dot in a label":          {asks([]string{"api.test"}, a), malformed},
		"an address":                {packet("127.1.0.1", a), none},
		"a number":                  {packet("2130706433", a), none},
		"the machine":               {packet("localhost", a), none},
		"the metadata service":      {packet("metadata.google.internal", a), none},
		"another alphabet":          {packet("аpi.test", a), none},
		"a NUL":                     {packet("api.test\x00", a), none},
		"the root":                  {asks(nil, a), none},
		"a pointer":                 {[]byte{0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1}, malformed},
		"a pointer to itself later": {[]byte{0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0xc0, 12, 0, 1}, malformed},
		"a longer name than is":     {asks([]string{long, long, long, long, long}, a), malformed},
		"a label past the end":      {[]byte{0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 63, 'a'}, malformed},
		"two questions":             {[]byte{0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1}, malformed},
		"an answer in a question":   {[]byte{0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 'a', 0, 0, 1}, malformed},
		"an update":                 {append([]byte{0, 0, 5 << 3}, packet("api.test", a)[3:]...), unhandled},
	} {
		got := ask(t, r, c.packet)
		if len(got) < 12 || got[3]&15 != c.code || got[2]&0x80 == 0 || !bytes.Equal(got[:2], c.packet[:2]) {
			t.Errorf("%s: %x", name, got)
			continue
		}
		wants := c.code == nothing && binary.BigEndian.Uint16(c.packet[len(c.packet)-2:]) == a
		if has := got[7] == 1; has != wants || has && !bytes.HasSuffix(got, []byte{127, 1, 0, 1}) {
			t.Errorf("%s: %x", name, got)
		}
	}
	if got := r.Lookup(t.Context(), append(packet("api.test", a), 0, 3)); got[3]&15 != malformed {
		t.Errorf("another class: %x", got)
	}
	if got := ask(t, r, append([]byte{0, 0, 0x81}, packet("api.test", a)[3:]...)); got != nil {
		t.Errorf("a response message gets the response %x", got)
	}
	if got := r.Lookup(t.Context(), []byte("short")); got != nil {
		t.Errorf("a truncated message gets the response %x", got)
	}
}

// TestPublicNames checks that in a run that may reach every public host, other names have no
// address, and that no server is queried to find that out.
func TestPublicNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Public: true})
	for name, want := range map[string]bool{
		"there.is.no.such.example": true, "api.test": true,
		"8.8.8.8": false, "127.1": false, "localhost": false, "printer.local": false, "metadata.google.internal": false, "nas": false,
	} {
		if got := ask(t, r, packet(name, a)); want != (got[7] == 1) || !want && got[3]&15 != 3 {
			t.Errorf("%s: %x", name, got)
		}
	}
}

// TestNamesAreBounded checks that a program cannot fill the memory with names that a wildcard
// allows, nor the record with rejected names.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Hosts: []string{"*.wild.test"}})
	for i := range egress.MaxNames + 10 {
		got := ask(t, r, packet(fmt.Sprintf("n%d.wild.test", i), a))
		want := []byte{127, 1, byte((i + 1) >> 8), byte(i + 1)}
		if ok := i < egress.MaxNames; ok != bytes.HasSuffix(got, want) || !ok && got[3]&15 != 2 {
			t.Fatalf("name %d: %x", i, got)
		}
		ask(t, r, packet(fmt.Sprintf("n%d.evil.test", i), a))
	}
	if got := ask(t, r, packet("n0.wild.test", a)); !bytes.HasSuffix(got, []byte{127, 1, 0, 1}) {
		t.Errorf("the first name: %x", got)
	}
	if n := len(w.noted()); n != 64 {
		t.Errorf("%d lookups are recorded", n)
	}
}

// FuzzLookup checks that every message gets a reply that resolvers accept, and that only the listed
// host ever has an address.
func FuzzLookup(f *testing.F) {
	for _, p := range [][]byte{packet("api.test", a), packet("API.test", aaaa), packet("evil.test", txt), {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0,
		0, 0xc0, 12, 0, 1}} {
		f.Add(append(p, 0, 1))
	}
	r, err := guard(f, egress.Config{}).Run(egress.RunConfig{Hosts: []string{"api.example"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(r.Close)
	f.Add(append(packet("api.example", a), 0, 1))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := r.Lookup(t.Context(), in)
		if out == nil {
			return
		}
		if len(out) < 12 || len(out) > 512 || !bytes.Equal(out[:2], in[:2]) || out[2]&0x80 == 0 {
			t.Fatalf("%x", out)
		}
		if out[7] == 0 {
			return
		}
		if want := []byte("\x03api\x07example\x00\x00\x01\x00\x01"); !bytes.HasPrefix(bytes.ToLower(out[12:]), want) ||
			!bytes.HasSuffix(out, []byte{127, 1, 0, 1}) {
			t.Fatalf("%x", out)
		}
	})
}
