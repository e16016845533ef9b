// Package faultproxy is a TCP proxy that breaks connections the way networks do: it cuts,
// refuses, delays and silences them. Tests and the chaos harness put it between Parley and
// PostgreSQL. The product never imports it.
package faultproxy

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// dialTimeout bounds the connection to the target.
const dialTimeout = 10 * time.Second

// Proxy forwards connections to one target. All methods may be called at any time and from
// several goroutines, and from the hook.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	links  []*link
	last   int           // the number of the newest connection
	refuse bool          // reset new connections
	resets int           // new connections that were reset
	frozen chan struct{} // nil, or closed by Thaw
	delay  time.Duration
	closed bool

	hooking sync.Mutex // held while the hook runs
	hook    Hook
}

// New starts a proxy that is closed when the test ends. The target is host:port, or the path of
// a Unix socket.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Listen starts a proxy on a free port of 127.0.0.1.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{listener: l, target: target}
	p.running.Go(p.acceptConnections)
	return p, nil
}

// Addr returns the address to connect to, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut resets every connection, on both sides, and returns their number.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	links := slices.Clone(p.links)
	p.mu.Unlock()
	for _, l := range links {
		l.resetBoth()
	}
	return len(links)
}

// Abandon resets the server's side of connections and leaves the client's side open and silent
// permanently, as after an outage in which only the server has closed the connection. It affects
// the connections that FreezeConn silenced, or all.
func (p *Proxy) Abandon(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.abandonServer(all)
	}
}

// Refuse makes the proxy reset new connections, or accept them again. Existing connections are not
// affected.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Refused returns how many new connections the proxy has reset.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resets
}

// Freeze makes every link half-open: connections stay open and new ones are accepted, but
// neither a byte nor the end of a connection passes in either direction until Thaw.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

// Thaw ends Freeze. The pending bytes are delivered, as by TCP after a network outage.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// Delay holds back each chunk of data for d in both directions. Zero ends the delay.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// OnChunk sets the hook that decides about each chunk; nil removes it.
func (p *Proxy) OnChunk(hook Hook) {
	p.hooking.Lock()
	defer p.hooking.Unlock()
	p.hook = hook
}

// Close resets all connections, stops listening and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

func (p *Proxy) acceptConnections() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.refuse || p.closed {
			p.resets++
			resetConn(conn)
		} else {
			p.last++
			l := &link{proxy: p, number: p.last, client: conn, gone: make(chan struct{})}
			p.links = append(p.links, l)
			p.running.Go(l.copyBoth)
		}
		p.mu.Unlock()
	}
}

func (p *Proxy) removeLink(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = slices.DeleteFunc(p.links, func(other *link) bool { return other == l })
}

// freezeState returns the channel to wait for while the proxy is frozen, or nil, and the delay.
func (p *Proxy) freezeState() (frozen <-chan struct{}, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen, p.delay
}

func (p *Proxy) dialTarget() (net.Conn, error) {
	network := "tcp"
	if filepath.IsAbs(p.target) {
		network = "unix"
	}
	return net.DialTimeout(network, p.target, dialTimeout)
}
