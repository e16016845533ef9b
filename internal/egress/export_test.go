package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Connect dials an address without checking it first.
func (g *Guard) Connect(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	return g.connectTo(ctx, at, false)
}

// Canonical returns a URL as it would be requested.
func (g *Guard) Canonical(u *url.URL) (*url.URL, error) { return g.canonicalURL(u) }

// Fill returns a request as it would be sent.
func (r *Run) Fill(req *http.Request) (*http.Request, error) {
	p, err := r.planRequest(req)
	if err != nil {
		return nil, err
	}
	return p.fillRequest(context.Background())
}

// AuthorityOf parses the target of a tunnel.
func AuthorityOf(text string) (*url.URL, error) { return authorityOf(text) }

// Matches reports whether an entry of a host list covers a host.
func Matches(pattern, scheme, name string, port uint16) (bool, error) {
	h, err := parsePattern(pattern)
	return h.matchesHost(scheme, name, port), err
}

// Bound sets small limits for a run.
func (r *Run) Bound(body, answer int64, connections int) {
	r.maxBody, r.maxAnswer, r.slots = body, answer, make(chan struct{}, connections)
}

// WaitForBodies sets how long a request of the run waits for memory.
func (r *Run) WaitForBodies(d time.Duration) { r.bodies.wait, r.guard.bodies.wait = d, d }

// Lookup answers a DNS message.
func (r *Run) Lookup(ctx context.Context, packet []byte) []byte { return r.answerQuery(ctx, packet) }

// Silent wraps a connection so that the server cannot send first.
func Silent(c net.Conn) net.Conn { return clientFirst(c) }
