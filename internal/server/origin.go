package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/loopback"
)

// CheckOrigin rejects a request that a foreign web page sent through a user's browser: one whose
// Origin is neither this machine nor BaseURL, and, on a connection within this machine, one whose
// Host is a foreign name, which DNS rebinding resolved to this machine. A proxy on this machine may
// forward other names.
func (s *Server) CheckOrigin(r *http.Request) error {
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && isLoopback(at.String()) && !Forwarded(r) {
		return s.checkHost(r)
	}
	return nil
}

// checkLocal rejects the requests that a foreign web page can send to development mode. No header
// exempts a request from the check of its Host: a page of a rebound name can set X-Forwarded-For.
func (s *Server) checkLocal(r *http.Request) error {
	if !s.Local {
		return nil
	}
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	return s.checkHost(r)
}

// checkOrigin rejects pages of other sites.
func (s *Server) checkOrigin(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		if s.isShared(origin) {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !isLoopback(u.Host) && !s.isOwn(u.Host) {
			return fault.New(fault.OriginNotAllowed, "Pages of this origin may not call this service.")
		}
	}
	return nil
}

// checkHost rejects names that are not this service's. An address is always accepted: DNS rebinding
// needs a name.
func (s *Server) checkHost(r *http.Request) error {
	if _, err := netip.ParseAddr(hostname(r.Host)); err == nil || isLoopback(r.Host) || s.isOwn(r.Host) {
		return nil
	}
	return fault.New(fault.OriginNotAllowed, "The Host %q is not a name of this server. If it is, set PARLEY_BASE_URL.", r.Host)
}

// isOwn reports whether a host is that of BaseURL.
func (s *Server) isOwn(host string) bool {
	u, err := url.Parse(s.BaseURL)
	return err == nil && u.Host != "" && strings.EqualFold(host, u.Host)
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	host = strings.ToLower(hostname(host))
	return loopback.IsHost(host) || strings.HasSuffix(host, ".localhost")
}

// hostname returns a host without its port and the brackets of an IPv6 address.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}
