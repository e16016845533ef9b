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

// copyBoth copies in both directions until either side ends or the link is reset.
func (l *link) copyBoth() {
	defer l.proxy.removeLink(l)
	if !l.waitToPass(0) {
		return
	}
	server, err := l.proxy.dialTarget()
	if err != nil {
		l.resetBoth()
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
	pumps.Go(func() { l.copyOne(server, l.client, ToServer) })
	pumps.Go(func() { l.copyOne(l.client, server, ToClient) })
	pumps.Wait()
}

// copyOne copies one direction. The end of one side closes the other one, unless the link is
// half-open: then the other side does not notice it.
func (l *link) copyOne(to, from net.Conn, dir Direction) {
	buf := make([]byte, 64<<10)
	for offset := int64(0); ; {
		n, err := from.Read(buf)
		if n > 0 && !l.passChunk(to, Chunk{Conn: l.number, Direction: dir, Offset: offset, Data: buf[:n]}) {
			return
		}
		offset += int64(n)
		if err != nil {
			if l.waitToPass(0) {
				l.closeBoth(closeConn)
			}
			return
		}
	}
}

// passChunk applies the hook's decision to a chunk and reports whether the link stays open.
func (l *link) passChunk(to net.Conn, c Chunk) bool {
	action := l.callHook(c)
	if action.kind == swallow {
		return true
	}
	if action.kind == freeze {
		l.holdBytes()
	}
	if !l.waitToPass(action.delay) {
		return false
	}
	if action.kind == reset {
		l.holdBytes() // otherwise a response to these bytes could pass before the reset
		_, _ = to.Write(c.Data[:min(action.bytes, len(c.Data))])
		l.resetBoth()
		return false
	}
	_, err := to.Write(c.Data)
	if err != nil && l.waitToPass(0) {
		l.closeBoth(closeConn)
	}
	return err == nil
}

// waitToPass returns when data may pass: neither a delay nor a freeze is active. It returns false
// if the link was reset meanwhile.
func (l *link) waitToPass(delay time.Duration) bool {
	frozen, all := l.proxy.freezeState()
	if delay += all; delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-l.gone:
			return false
		case <-timer.C:
		}
		frozen, _ = l.proxy.freezeState()
	}
	for ; frozen != nil; frozen, _ = l.proxy.freezeState() {
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

// callHook calls the hook, which does not see chunks that a link read before it was reset.
func (l *link) callHook(c Chunk) Action {
	l.proxy.hooking.Lock()
	defer l.proxy.hooking.Unlock()
	if l.proxy.hook == nil || l.isGone() {
		return Forward
	}
	return l.proxy.hook(c)
}

// holdBytes holds back every byte that has not passed yet.
func (l *link) holdBytes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

// abandonServer resets the server's side of a silent link.
func (l *link) abandonServer(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = l.silent || all
	if l.silent && l.server != nil {
		resetConn(l.server)
	}
}

func (l *link) resetBoth() { l.closeBoth(resetConn) }

// closeBoth closes both sides, once.
func (l *link) closeBoth(shut func(net.Conn)) {
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
