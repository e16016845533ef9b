package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"sync"
)

// The limits of lookups by programs without a proxy in a run.
const (
	MaxNames   = 4096 // names with an address
	maxRefused = 64   // recorded names without one
)

// names are the hosts that have an address inside the sandbox: the first has 127.1.0.1, the second
// 127.1.0.2. An address only identifies a host: every request is checked separately.
type names struct {
	mu   sync.Mutex
	list []string // canonical
	at   map[string]int

	refused map[string]bool
}

// addressFor returns the address of a host, and assigns one if necessary. It fails if too many are
// assigned.
func (n *names) addressFor(host string) (a [4]byte, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, known := n.at[host]
	if !known {
		if len(n.list) == MaxNames {
			return a, false
		}
		if n.at == nil {
			n.at = make(map[string]int)
		}
		n.list = append(n.list, host)
		i = len(n.list)
		n.at[host] = i
	}
	return [4]byte{127, 1, byte(i >> 8), byte(i)}, true
}

// noteRefused reports whether a name is rejected for the first time and worth a record: a program
// can make up many.
func (n *names) noteRefused(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused[name] || len(n.refused) == maxRefused {
		return false
	}
	if n.refused == nil {
		n.refused = make(map[string]bool)
	}
	n.refused[name] = true
	return true
}

// hostAt returns the host that an address was assigned to; "" if none.
func (n *names) hostAt(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil || !at.Addr().Unmap().Is4() {
		return ""
	}
	b := at.Addr().Unmap().As4()
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := int(b[2])<<8 | int(b[3]); b[0] == 127 && b[1] == 1 && i > 0 && i <= len(n.list) {
		return n.list[i-1]
	}
	return ""
}

// ServeTLS serves connections of programs without a proxy to port 443 of the addresses that
// ServeDNS returns. A connection is treated like a tunnel to the host of its address, except that
// the program must name that host in the handshake.
func (r *Run) ServeTLS(ctx context.Context, l net.Listener) error {
	a, err := r.authority()
	if err != nil {
		return err
	}
	return r.serveDirect(ctx, l, func(c net.Conn, host string) net.Conn {
		return &tunnel{tls.Server(c, a.tlsConfig(host, true)), &url.URL{Scheme: "https", Host: host}}
	})
}

// ServePlain is ServeTLS for port 80.
func (r *Run) ServePlain(ctx context.Context, l net.Listener) error {
	return r.serveDirect(ctx, l, func(c net.Conn, host string) net.Conn {
		return &tunnel{c, &url.URL{Scheme: "http", Host: host}}
	})
}

func (r *Run) serveDirect(ctx context.Context, l net.Listener, enter func(c net.Conn, host string) net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	s := &proxy{run: r}
	err := s.newServer(ctx, s.serveTunnel).Serve(&direct{&bounded{Listener: l, ctx: ctx, slots: r.slots}, &r.names, enter})
	cancel() // closes every connection
	s.open.Wait()
	return unlessClosed(err)
}

// direct accepts connections to the addresses of hosts, and closes others.
type direct struct {
	*bounded
	names *names
	enter func(c net.Conn, host string) net.Conn
}

func (d *direct) Accept() (net.Conn, error) {
	for {
		c, err := d.bounded.Accept()
		if err != nil {
			return nil, err
		}
		if host := d.names.hostAt(c.LocalAddr()); host != "" {
			return d.enter(c, host), nil
		}
		c.Close()
	}
}
