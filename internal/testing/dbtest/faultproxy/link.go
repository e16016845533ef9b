package faultproxy

import (
	"net"
	"sync"
	"time"
)

// link is one client's connection with its connection to the target.
type link struct {
	proxy  *Proxy
	number int
	client net.Conn

	mu     sync.Mutex
	server net.Conn // nil before it is dialed
	over   bool
	gone   chan struct{} // closed by the first reset or end
	silent bool          // no byte passes anymore
}

// run copies in both directions until either side ends or the link is reset.
func (l *link) run() {
	defer l.proxy.remove(l)
	if !l.wait(0) {
		return
	}
	server, err := l.proxy.dial()
	if err != nil {
		l.reset()
		return
	}
	l.mu.Lock()
	l.server = server
	over := l.over
	l.mu.Unlock()
	if over { // reset while it was dialed
		resetConn(server)
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(server, l.client, ToServer) })
	pumps.Go(func() { l.pump(l.client, server, ToClient) })
	pumps.Wait()
}

// pump copies one direction. The end of one side closes the other one, unless the link is
// half-open: then the other side does not notice it.
func (l *link) pump(to, from net.Conn, dir Direction) {
	buf := make([]byte, 64<<10)
	for offset := int64(0); ; {
		n, err := from.Read(buf)
		if n > 0 && !l.pass(to, Chunk{Conn: l.number, Direction: dir, Offset: offset, Data: buf[:n]}) {
			return
		}
		offset += int64(n)
		if err != nil {
			if l.wait(0) {
				l.end(closeConn)
			}
			return
		}
	}
}

// pass applies the hook's decision to a chunk and reports whether the link stays open.
func (l *link) pass(to net.Conn, c Chunk) bool {
	action := l.decide(c)
	if action.kind == swallow {
		return true
	}
	if action.kind == freeze {
		l.silence()
	}
	if !l.wait(action.delay) {
		return false
	}
	if action.kind == reset {
		l.silence() // otherwise a response to these bytes could pass before the reset
		_, _ = to.Write(c.Data[:min(action.bytes, len(c.Data))])
		l.reset()
		return false
	}
	_, err := to.Write(c.Data)
	if err != nil && l.wait(0) {
		l.end(closeConn)
	}
	return err == nil
}

// wait returns when data may pass: neither a delay nor a freeze is active. It returns false if the
// link was reset meanwhile.
func (l *link) wait(delay time.Duration) bool {
	frozen, all := l.proxy.state()
	if delay += all; delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-l.gone:
			return false
		case <-timer.C:
		}
		frozen, _ = l.proxy.state()
	}
	for ; frozen != nil; frozen, _ = l.proxy.state() {
		select {
		case <-l.gone:
			return false
		case <-frozen:
		}
	}
	l.mu.Lock()
	silent := l.silent
	l.mu.Unlock()
	if silent {
		<-l.gone
	}
	return !l.isGone()
}

// isGone reports whether the link was reset or has ended.
func (l *link) isGone() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// decide calls the hook, which does not see chunks that a link read before it was reset.
func (l *link) decide(c Chunk) Action {
	l.proxy.hooking.Lock()
	defer l.proxy.hooking.Unlock()
	if l.proxy.hook == nil || l.isGone() {
		return Forward
	}
	return l.proxy.hook(c)
}

// silence holds back every byte that has not passed yet.
func (l *link) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

// abandon resets the server's side of a silent link.
func (l *link) abandon(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = l.silent || all
	if l.silent && l.server != nil {
		resetConn(l.server)
	}
}

func (l *link) reset() { l.end(resetConn) }

// end closes both sides, once.
func (l *link) end(shut func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.gone)
	shut(l.client)
	if l.server != nil {
		shut(l.server)
	}
}

func closeConn(c net.Conn) { _ = c.Close() }

// resetConn closes a connection with a reset. Unix sockets cannot reset: the other side sees the
// end.
func resetConn(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
