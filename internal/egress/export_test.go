package egress

import (
	"context"
	"net"
	"net/netip"
	"net/url"
)

// Connect dials an address that nobody has looked at.
func (g *Guard) Connect(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	return g.connect(ctx, at, false)
}

// Canonical is a URL as it will be requested.
func (g *Guard) Canonical(u *url.URL) (*url.URL, error) { return g.canonical(u) }
