package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/hashicorp/yamux"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// forwarder forwards the connections of a command to the server.
type forwarder struct {
	mux   *yamux.Session
	slots chan struct{} // one for each connection
}

// serveCommand lets a command connect to what its server serves.
func (f *forwarder) serveCommand(o order, c *sandbox.Command) {
	if o.Proxy {
		c.Serve = f.listen(proxyPort)
	}
	if o.Direct {
		c.Direct = &sandbox.Direct{DNS: f.forwardPackets, TLS: f.listen(tlsPort), Plain: f.listen(plainPort)}
	}
}

// listen returns a function that forwards the connections to a port until ctx ends. More connections
// than there are slots wait in the kernel's queue.
func (f *forwarder) listen(p port) func(context.Context, net.Listener) error {
	return func(ctx context.Context, l net.Listener) error {
		defer context.AfterFunc(ctx, func() { l.Close() })()
		var open sync.WaitGroup
		defer open.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for {
			select {
			case f.slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			c, err := l.Accept()
			if err != nil {
				<-f.slots
				return unlessClosed(err)
			}
			open.Go(func() {
				defer func() { <-f.slots }()
				f.forward(ctx, p, c)
			})
		}
	}
}

// unlessClosed returns nil for a connection that was closed on this side.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// forward connects one connection of the command with the server until both have ended it.
func (f *forwarder) forward(ctx context.Context, p port, c net.Conn) {
	defer c.Close()
	s, err := f.mux.OpenStream()
	if err != nil {
		return // the connection to the server has ended, and the command will
	}
	stream := &conn{Stream: s, local: c.LocalAddr()}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { c.Close(); stream.Close() })()
	if writeTarget(stream, p, c.LocalAddr()) != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { copyHalf(stream, c) })
	both.Go(func() { copyHalf(c, stream) })
	both.Wait()
}

// half is a connection whose two directions end separately.
type half interface {
	net.Conn
	CloseWrite() error
}

// copyHalf copies one direction. After an error it ends both.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	w, ok := to.(half)
	if err != nil || !ok || w.CloseWrite() != nil {
		to.Close()
		from.Close()
	}
}

// forwardPackets forwards packets in both directions until ctx ends.
func (f *forwarder) forwardPackets(ctx context.Context, c net.PacketConn) error {
	s, err := f.mux.OpenStream()
	if err != nil {
		return nil // the connection to the server has ended, and the command will
	}
	stream := packets{&conn{Stream: s, local: c.LocalAddr()}}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { c.Close(); stream.Close() })()
	if err := writeTarget(stream, dnsPort, c.LocalAddr()); err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { copyPackets(c, stream) })
	both.Go(func() {
		copyPackets(stream, c)
		stream.Close()
	})
	both.Wait()
	return nil
}

// copyPackets copies packets until from ends. A packet that cannot be sent is lost.
func copyPackets(to, from net.PacketConn) {
	b := make([]byte, maxPacket)
	for {
		n, at, err := from.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = to.WriteTo(b[:n], at)
	}
}
