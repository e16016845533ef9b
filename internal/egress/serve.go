package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serve is the proxy for the programs that a run has started. They send plain requests in absolute
// form and tunnels for the others; Do reads, checks and sends the requests in a tunnel. Programs
// that use no proxy are served by ServeDNS, ServeTLS and ServePlain. Serve returns when l is closed
// or ctx ends, and then every connection is closed. A run may serve several listeners.
func (r *Run) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &proxy{run: r, tunnels: &handoff{conns: make(chan net.Conn), done: ctx.Done(), addr: l.Addr()}}
	outside, inside := s.newServer(ctx, s.serveProxy), s.newServer(ctx, s.serveTunnel)
	var accepting sync.WaitGroup
	accepting.Go(func() { _ = inside.Serve(s.tunnels) })
	bound := &bounded{Listener: l, ctx: ctx, slots: r.slots}
	unlink := context.AfterFunc(ctx, func() { l.Close() })
	err := outside.Serve(bound)
	unlink()
	cancel() // closes every connection
	accepting.Wait()
	s.open.Wait()
	return unlessClosed(err)
}

// unlessClosed returns nil if a server ended because its listener was closed.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// proxy is one call of Serve.
type proxy struct {
	run     *Run
	tunnels *handoff
	open    sync.WaitGroup // connections, each until its handlers have returned
}

func (s *proxy) newServer(ctx context.Context, h http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: HeaderTime,
		IdleTimeout:       IdleTime,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // it would reveal what programs do

		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, tunnelKey{}, c) },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.open.Add(1)
			case http.StateClosed: // or hijacked, and then handled by another function
				s.open.Done()
			}
		},
	}
}

// bounded acquires a slot for every connection, and closes the connections when ctx ends.
type bounded struct {
	net.Listener
	ctx   context.Context
	slots chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.slots <- struct{}{}:
			return &slotted{Conn: c, slots: b.slots, unlink: context.AfterFunc(b.ctx, func() { c.Close() })}, nil
		default:
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, tooMany)
			c.Close()
		}
	}
}

// tooMany is the response to a connection beyond the limit.
var tooMany = fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+
	"Parley refused this request: at most %d connections are open at a time.\n", MaxConnections)

type slotted struct {
	net.Conn
	slots  chan struct{}
	unlink func() bool
	once   sync.Once
}

func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.unlink(); <-c.slots })
	return err
}

// handoff is a listener for connections that have become tunnels.
type handoff struct {
	conns chan net.Conn
	done  <-chan struct{}
	addr  net.Addr
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handoff) Close() error   { return nil }
func (h *handoff) Addr() net.Addr { return h.addr }
