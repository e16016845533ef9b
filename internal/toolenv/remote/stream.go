package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// port is a port of the sandbox, the first byte of a stream from the runner.
type port byte

const (
	proxyPort port = 'p'
	tlsPort   port = 't'
	plainPort port = 'h'
	dnsPort   port = 'd'
)

// writeTarget begins a stream with the port and the address that the command has connected to.
func writeTarget(w io.Writer, p port, target net.Addr) error {
	at, err := netip.ParseAddrPort(target.String())
	if err != nil || !at.Addr().Unmap().Is4() {
		return fmt.Errorf("%s is not an IPv4 address", target)
	}
	ip := at.Addr().Unmap().As4()
	_, err = w.Write(binary.BigEndian.AppendUint16(append([]byte{byte(p)}, ip[:]...), at.Port()))
	return err
}

func readTarget(r io.Reader) (port, netip.AddrPort, error) {
	var head [7]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, netip.AddrPort{}, err
	}
	return port(head[0]), netip.AddrPortFrom(netip.AddrFrom4([4]byte(head[1:5])), binary.BigEndian.Uint16(head[5:])), nil
}

// conn is a stream whose Close ends a Read, as that of other connections does.
type conn struct {
	*yamux.Stream
	local  net.Addr
	closed atomic.Bool
}

func (c *conn) LocalAddr() net.Addr { return c.local }

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	if err != nil && err != io.EOF && c.closed.Load() {
		err = net.ErrClosed
	}
	return n, err
}

func (c *conn) Close() error {
	c.closed.Store(true)
	return errors.Join(c.Stream.SetReadDeadline(time.Unix(1, 0)), c.Stream.Close())
}

// CloseWrite ends the data of this side.
func (c *conn) CloseWrite() error { return c.Stream.Close() }

// packets carries datagrams on a stream: each is its length, the address of the program, its data.
type packets struct{ *conn }

const maxPacket = 64 << 10

func (p packets) ReadFrom(b []byte) (int, net.Addr, error) {
	var head [8]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		return 0, nil, closedAtEnd(err)
	}
	data := make([]byte, binary.BigEndian.Uint16(head[:]))
	if _, err := io.ReadFull(p.conn, data); err != nil {
		return 0, nil, closedAtEnd(err)
	}
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte(head[2:6])), binary.BigEndian.Uint16(head[6:]))
	return copy(b, data), net.UDPAddrFromAddrPort(from), nil
}

// closedAtEnd returns the error of a closed connection for the end of a stream.
func closedAtEnd(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return net.ErrClosed
	}
	return err
}

func (p packets) WriteTo(b []byte, to net.Addr) (int, error) {
	at, err := netip.ParseAddrPort(to.String())
	if err != nil || !at.Addr().Unmap().Is4() || len(b) >= maxPacket {
		return 0, fmt.Errorf("a packet of %d bytes to %s cannot be sent", len(b), to)
	}
	ip := at.Addr().Unmap().As4()
	packet := binary.BigEndian.AppendUint16(nil, uint16(len(b)))
	packet = binary.BigEndian.AppendUint16(append(packet, ip[:]...), at.Port())
	_, err = p.conn.Write(append(packet, b...))
	return len(b), err
}

// listener passes on the streams of a port.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	end   func()
}

func newListener() *listener {
	done := make(chan struct{})
	return &listener{conns: make(chan net.Conn), done: done, end: sync.OnceFunc(func() { close(done) })}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.end(); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3128} }

// pass passes a stream to the next Accept, or closes it.
func (l *listener) pass(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}
