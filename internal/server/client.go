package server

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// authenticate returns the caller that a request's key belongs to. An address that presented too
// many keys that do not exist is rejected before the database is read, unless its key was valid a
// while ago: clients behind the same proxy must not suffer from one of them.
func (s *Server) authenticate(ctx context.Context, r *http.Request) (apikey.Principal, error) {
	token := bearerToken(r.Header)
	if _, _, ok := apikey.Parse(token); !ok || s.Keys.Seen(token) {
		return s.Keys.Authenticate(ctx, token, remoteAddress(r))
	}
	client := s.ClientAddress(r)
	if wait := s.Failures.Wait(client, time.Now()); wait > 0 {
		return apikey.Principal{}, &fault.Error{Code: fault.RateLimited, Detail: fault.Detail{RetryAfter: wait},
			Message: "Your address has sent too many API keys that are not valid. Wait, then send a valid key."}
	}
	p, err := s.Keys.Authenticate(ctx, token, remoteAddress(r))
	if f := fault.From(err); f != nil && f.Code == fault.InvalidAPIKey {
		s.Failures.Count(client, time.Now())
	}
	return p, err
}

// forwarding are the headers by which proxies and content delivery networks name the client of a
// request.
var forwarding = []string{
	"Forwarded", "Via", "Client-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Real-Ip", "X-Original-Forwarded-For",
	"X-Original-Host", "X-Proxyuser-Ip", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Appengine-User-Ip", "X-Azure-Clientip",
	"X-Azure-Socketip", "X-Envoy-External-Address", "X-Nf-Client-Connection-Ip", "X-Vercel-Forwarded-For", "Cdn-Loop",
}

// Forwarded reports whether the request has a header that only proxies set.
func Forwarded(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || strings.HasPrefix(name, "Cf-") || slices.Contains(forwarding, name) {
			return true
		}
	}
	return false
}

// peerAddress returns the address at the other end of the connection.
func peerAddress(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Addr().Unmap()
}

// remoteAddress returns the address of the client as far as a key for this machine may depend on
// it. Behind a proxy every client would look like this machine, so a forwarded request has no
// address.
func remoteAddress(r *http.Request) netip.Addr {
	if Forwarded(r) {
		return netip.Addr{}
	}
	return peerAddress(r)
}

// ClientAddress returns the address to which failures are counted and that the log of changes
// names: the peer's, or, if that is one of TrustedProxies, the nearest address in X-Forwarded-For
// that is not. Everything before it was written by the client.
func (s *Server) ClientAddress(r *http.Request) netip.Addr {
	client := peerAddress(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.isTrusted(client) {
			break
		}
		addr, ok := parseHop(hop)
		if !ok {
			break
		}
		client = addr
	}
	return client
}

func (s *Server) isTrusted(addr netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseHop parses an address of X-Forwarded-For, which some proxies write with its port.
func parseHop(hop string) (netip.Addr, bool) {
	hop = strings.TrimSpace(hop)
	addr, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	if err != nil {
		at, failed := netip.ParseAddrPort(hop)
		addr, err = at.Addr(), failed
	}
	return addr.Unmap().WithZone(""), err == nil
}
