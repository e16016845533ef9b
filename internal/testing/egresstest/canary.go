package egresstest

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// Canary is a server on this machine that no request must reach.
type Canary struct {
	Addr string // 127.0.0.1:port
	Port string

	listener net.Listener
	calls    atomic.Int32
	done     chan struct{}
}

// NewCanary listens until the test ends, and fails the test if a connection arrived.
func NewCanary(t testing.TB) *Canary {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Canary{Addr: l.Addr().String(), listener: l, done: make(chan struct{})}
	_, c.Port, _ = net.SplitHostPort(c.Addr)
	go c.count()
	t.Cleanup(func() { c.check(t) })
	return c
}

func (c *Canary) count() {
	defer close(c.done)
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.calls.Add(1)
		conn.Close()
	}
}

// check connects once itself, to find out if the canary works.
func (c *Canary) check(t testing.TB) {
	conn, err := net.Dial("tcp", c.Addr)
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = conn.Read(make([]byte, 1)) // returns when it was counted
	conn.Close()
	c.listener.Close()
	wait.Receive(t, "the end", c.done)
	if n := c.calls.Load(); n != 1 {
		t.Errorf("the canary saw %d connections", n-1)
	}
}
