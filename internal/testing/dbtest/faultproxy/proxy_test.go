package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is the time after which a test concludes that nothing arrives; late bounds everything else.
const (
	soon = 50 * time.Millisecond
	late = 30 * time.Second
)

// echo is a server that sends back what it receives and counts the connections that ended.
func echo(t *testing.T, network, address string) (target string, ended <-chan error) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ends := make(chan error, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := io.Copy(conn, conn)
				_ = conn.Close()
				ends <- err
			}()
		}
	}()
	return l.Addr().String(), ends
}

// peer is a client's connection through the proxy.
type peer struct {
	t *testing.T
	net.Conn
}

func connect(t *testing.T, p *faultproxy.Proxy) peer {
	t.Helper()
	conn, err := net.DialTimeout("tcp", p.Addr(), late)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return peer{t, conn}
}

func (c peer) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads n bytes, or fewer before an error.
func (c peer) receive(n int, within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	buf := make([]byte, n)
	n, err := io.ReadFull(c, buf)
	return string(buf[:n]), err
}

func (c peer) exchange(text string) {
	c.t.Helper()
	c.send(text)
	if got, err := c.receive(len(text), late); got != text {
		c.t.Fatalf("sent %q, received %q, %v", text, got, err)
	}
}

// silent checks that nothing arrives, not even the connection's end.
func (c peer) silent() {
	c.t.Helper()
	if got, err := c.receive(1, soon); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("received %q, %v; want silence", got, err)
	}
}

// broken checks that the connection was reset after the given text.
func (c peer) broken(after string) {
	c.t.Helper()
	got, err := c.receive(len(after)+1, late)
	if got != after || !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("received %q, %v; want %q and a reset", got, err, after)
	}
}

// refused checks that a new connection is reset, which may happen before Dial returns.
func refused(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", p.Addr(), late)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer{t, conn}.broken("")
}

func end(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(late):
		t.Fatal("the server never saw the connection end")
		return nil
	}
}
