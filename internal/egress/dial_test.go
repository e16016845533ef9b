package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/egress"
)

// nowhere is an address of IPv6's public space that is routed nowhere: what is sent
// to it does not leave.
const nowhere = "3ffe::1"

// canary is a server on loopback that nobody must reach.
type canary struct {
	net.Listener
	port  string
	calls atomic.Int32
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := &canary{Listener: l, port: port}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.calls.Add(1)
			conn.Close()
		}
	})
	t.Cleanup(func() {
		// It can see: the one call of this test is counted.
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		conn.Read(make([]byte, 1))
		conn.Close()
		l.Close()
		wg.Wait()
		if n := c.calls.Load(); n != 1 {
			t.Errorf("the canary saw %d connections", n-1)
		}
	})
	return c
}

func get(t *testing.T, c *egress.Client, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err == nil {
		res.Body.Close()
	}
	return err
}

// TestNamesThatLeadInside asks for names whose answers are not, or not all, public.
func TestNamesThatLeadInside(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	z := serveDNS(t, map[string][][]netip.Addr{
		"inside.example": {addrs("127.0.0.1")},
		"mixed.example":  {addrs(nowhere, "93.184.216.34", "127.0.0.1")},
		"mapped.example": {addrs("::ffff:127.0.0.1")},
		"nat64.example":  {addrs("64:ff9b::7f00:1")},
		"six.example":    {addrs("::1")},
		"zero.example":   {addrs("0.0.0.0", "::")},
		"cloud.example":  {addrs("169.254.169.254")},
	})
	client := guard(t, egress.Config{Resolver: z.resolver()}).Client(egress.Limits{})
	for name := range z.names {
		err := get(t, client, "https://"+name+":"+c.port+"/")
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "127.0") {
			t.Errorf("%s: the refusal tells an address: %v", name, err)
		}
	}
	if err := get(t, client, "https://missing.example/"); err == nil {
		t.Error("a name that does not exist was reached")
	} else if _, dns := errors.AsType[*net.DNSError](err); !dns {
		t.Errorf("missing: %v", err)
	}
}

// TestRebinding asks a server of names that changes its mind: first it says what
// passes every check, then 127.0.0.1.
func TestRebinding(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	z := serveDNS(t, map[string][][]netip.Addr{"rebind.example": {addrs(nowhere), addrs("127.0.0.1")}})
	g := guard(t, egress.Config{Resolver: z.resolver()})
	client, url := g.Client(egress.Limits{}), "https://rebind.example:"+c.port+"/"
	if err := g.CheckURL(url); err != nil {
		t.Fatal(err)
	}
	err := get(t, client, url)
	if _, refused := errors.AsType[*egress.Error](err); err == nil || refused {
		t.Errorf("the first answer is public, yet: %v", err)
	}
	if n := z.questions("rebind.example"); n != 1 {
		t.Errorf("one connection asked DNS %d times", n)
	}
	for range 3 {
		err := get(t, client, url)
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("after the change: %v", err)
		}
	}
}

// TestKernelGetsCheckedAddresses goes past the check of DNS answers.
func TestKernelGetsCheckedAddresses(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	g := guard(t, egress.Config{})
	for _, a := range []string{"127.0.0.1:", "[::ffff:127.0.0.1]:", "0.0.0.0:", "[::]:"} {
		_, err := g.Connect(t.Context(), netip.MustParseAddrPort(a+c.port))
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{"127.0.0.1:", "[::1]:", "localhost:", "2130706433:", "127.1:"} {
		if _, err := g.DialContext(t.Context(), "tcp", a+c.port); err == nil {
			t.Errorf("%s was dialled", a)
		}
	}
	if _, err := g.DialContext(t.Context(), "unix", "/run/docker.sock"); err == nil {
		t.Error("a socket was dialled")
	}
}
