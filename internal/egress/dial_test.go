package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/egresstest"
)

// nowhere is an IPv6 address in public space without a route: packets to it do not leave the host.
const nowhere = "3ffe::1"

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

// TestNamesThatLeadInside requests names whose DNS answers are not all public.
func TestNamesThatLeadInside(t *testing.T) {
	t.Parallel()
	c := egresstest.NewCanary(t)
	names := map[string][][]netip.Addr{
		"inside.example": {egresstest.Addrs("127.0.0.1")},
		"mixed.example":  {egresstest.Addrs(nowhere, "93.184.216.34", "127.0.0.1")},
		"mapped.example": {egresstest.Addrs("::ffff:127.0.0.1")},
		"nat64.example":  {egresstest.Addrs("64:ff9b::7f00:1")},
		"six.example":    {egresstest.Addrs("::1")},
		"zero.example":   {egresstest.Addrs("0.0.0.0", "::")},
		"cloud.example":  {egresstest.Addrs("169.254.169.254")},
	}
	z := egresstest.Serve(t, "127.0.0.1:0", names)
	client := guard(t, egress.Config{Resolver: z.Resolver()}).Client(egress.Limits{})
	for name := range names {
		err := get(t, client, "https://"+name+":"+c.Port+"/")
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "127.0") {
			t.Errorf("%s: the error contains an address: %v", name, err)
		}
	}
	if err := get(t, client, "https://missing.example/"); err == nil {
		t.Error("a name that does not exist was reached")
	} else if _, dns := errors.AsType[*net.DNSError](err); !dns {
		t.Errorf("missing: %v", err)
	}
}

// TestRebinding uses a DNS server that changes its answer: the first one passes every check, the
// next is 127.0.0.1.
func TestRebinding(t *testing.T) {
	t.Parallel()
	c := egresstest.NewCanary(t)
	z := egresstest.Serve(t, "127.0.0.1:0", map[string][][]netip.Addr{"rebind.example": {egresstest.Addrs(nowhere),
		egresstest.Addrs("127.0.0.1")}})
	g := guard(t, egress.Config{Resolver: z.Resolver()})
	client, url := g.Client(egress.Limits{}), "https://rebind.example:"+c.Port+"/"
	if err := g.CheckURL(url); err != nil {
		t.Fatal(err)
	}
	err := get(t, client, url)
	if _, refused := errors.AsType[*egress.Error](err); err == nil || refused {
		t.Errorf("the first answer is public, but: %v", err)
	}
	if n := z.Questions("rebind.example"); n != 1 {
		t.Errorf("one connection queried DNS %d times", n)
	}
	for range 3 {
		err := get(t, client, url)
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("after the change: %v", err)
		}
	}
}

// TestKernelGetsCheckedAddresses bypasses the check of DNS answers.
func TestKernelGetsCheckedAddresses(t *testing.T) {
	t.Parallel()
	c := egresstest.NewCanary(t)
	g := guard(t, egress.Config{})
	for _, a := range []string{"127.0.0.1:", "[::ffff:127.0.0.1]:", "0.0.0.0:", "[::]:"} {
		_, err := g.Connect(t.Context(), netip.MustParseAddrPort(a+c.Port))
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{"127.0.0.1:", "[::1]:", "localhost:", "2130706433:", "127.1:"} {
		if _, err := g.DialContext(t.Context(), "tcp", a+c.Port); err == nil {
			t.Errorf("%s was dialled", a)
		}
	}
	if _, err := g.DialContext(t.Context(), "unix", "/run/docker.sock"); err == nil {
		t.Error("a socket was dialled")
	}
}

// TestOperatorsLocalName reaches a name of this machine's hosts file that the operator allows.
func TestOperatorsLocalName(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conn, err := guard(t, egress.Config{Allow: []string{"http://localhost:" + port}}).DialContext(t.Context(), "tcp", "localhost:"+port)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
