package mcpserver

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/fault"
)

// local refuses what a page of somebody else's could send through its reader's browser: a
// foreign Origin, and, on a connection within this machine, a foreign Host, which a name has
// that was rebound to this machine. Pages of the service's own address and of this machine
// may come in.
func (s *server) local(r *http.Request) error {
	own := ""
	if u, err := url.Parse(s.cfg.BaseURL); err == nil {
		own = u.Host
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !loopback(u.Host) && !strings.EqualFold(u.Host, own) {
			return fault.New(fault.OriginNotAllowed, "Pages of this origin may not call this service.")
		}
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && loopback(at.String()) && !loopback(r.Host) && !strings.EqualFold(r.Host, own) && !door.Forwarded(r) {
		return fault.New(fault.OriginNotAllowed, "This server is not called %q. If it is, set PARLEY_BASE_URL.", r.Host)
	}
	return nil
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}
