package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

type dialer func(ctx context.Context, network, hostport string) (net.Conn, error)

// newTransport makes each request on its own connection. net/http logs unexpected data before and
// after a response, and a server can echo its request there.
func newTransport(dial dialer, config *tls.Config, answerTime time.Duration) *http.Transport {
	return &http.Transport{ // Proxy is nil: the environment's proxy is not used
		DialContext: func(ctx context.Context, network, hostport string) (net.Conn, error) {
			c, err := dial(ctx, network, hostport)
			if err != nil {
				return nil, err
			}
			return clientFirst(c), nil
		},
		DialTLSContext: func(ctx context.Context, network, hostport string) (net.Conn, error) {
			c, err := dialTLS(ctx, dial, config, network, hostport)
			if err != nil {
				return nil, err
			}
			return clientFirst(c), nil
		},
		ResponseHeaderTimeout:  answerTime,
		MaxResponseHeaderBytes: MaxHeader,
		DisableKeepAlives:      true,
	}
}

func dialTLS(ctx context.Context, dial dialer, config *tls.Config, network, hostport string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, network, hostport)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.ServerName = host
	secured := tls.Client(c, config)
	ctx, cancel := context.WithTimeout(ctx, HandshakeTime)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secured, nil
}

// quietConn returns no data before the first write.
type quietConn struct {
	net.Conn
	ready func()
	asked chan struct{}
}

// clientFirst keeps a server from sending first.
func clientFirst(c net.Conn) net.Conn {
	asked := make(chan struct{})
	return &quietConn{c, sync.OnceFunc(func() { close(asked) }), asked}
}

func (c *quietConn) Write(p []byte) (int, error) {
	c.ready()
	return c.Conn.Write(p)
}

func (c *quietConn) Read(p []byte) (int, error) {
	<-c.asked
	return c.Conn.Read(p)
}

func (c *quietConn) Close() error {
	err := c.Conn.Close() // first, or a reader gets the received data
	c.ready()
	return err
}
