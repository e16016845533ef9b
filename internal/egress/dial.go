package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// connectTime is the time limit for connecting to one address.
const connectTime = 5 * time.Second

// DialContext connects to host:port if it may be reached. A name is resolved once; a single answer
// that is not public rejects them all, because it is either a mistake or an attack.
func (g *Guard) DialContext(ctx context.Context, network, hostport string) (net.Conn, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("egress does not dial %s", network)
	}
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	name, addr, err := parseHost(host)
	if err != nil {
		return nil, err
	}
	port := uint16(n)
	if addr.IsValid() {
		return g.connectTo(ctx, netip.AddrPortFrom(addr, port), false)
	}
	r, named := g.rules.findRule(name, addr, port)
	if r.pin.IsValid() {
		return g.connectTo(ctx, r.pin, true)
	}
	addrs, err := g.resolveHost(ctx, name, named)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if !named && !g.mayReach(a, port) {
			return nil, refuseAddress("The URL's host is not a public one.")
		}
	}
	var failed []error
	for _, a := range addrs {
		conn, err := g.connectTo(ctx, netip.AddrPortFrom(a, port), named)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// resolveHost queries all addresses of a name, which is complete: no search domain of this machine
// is appended. A name of the operator without a dot, such as localhost, is resolved as this machine
// does: /etc/hosts has such names without the final dot.
func (g *Guard) resolveHost(ctx context.Context, name string, operators bool) ([]netip.Addr, error) {
	if !operators || strings.Contains(name, ".") {
		name += "."
	}
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// mayReach reports whether an address may be reached.
func (g *Guard) mayReach(a netip.Addr, port uint16) bool {
	if Public(a) {
		return true
	}
	_, ruled := g.rules.findRule("", a.Unmap(), port)
	return ruled
}

// connectTo dials an address, and checks the address that the kernel gets again. The operator's own
// names may resolve to any address.
func (g *Guard) connectTo(ctx context.Context, at netip.AddrPort, operators bool) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		got, err := netip.ParseAddrPort(address)
		if err != nil || !operators && !g.mayReach(got.Addr(), got.Port()) {
			return refuseAddress("The URL's address is not a public one.")
		}
		return nil
	}}
	return d.DialContext(ctx, "tcp", at.String())
}
