package sandbox_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// tryConnect sends data to addresses such as tcp:10.0.0.1:80.
func tryConnect(addresses []string) error {
	for _, to := range addresses {
		network, address, _ := strings.Cut(to, "|")
		conn, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil {
			_, err = conn.Write([]byte("canary"))
			conn.Close()
		}
		tried(to, err)
	}
	return nil
}

func TestNoAddressCanBeReached(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	tcp, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	var reached sync.WaitGroup
	reached.Go(func() {
		if _, err := tcp.Accept(); err == nil {
			t.Error("a process connected to the host")
		}
	})
	reached.Go(func() {
		if n, _, err := udp.ReadFrom(make([]byte, 10)); err == nil {
			t.Errorf("%d bytes reached the host", n)
		}
	})
	_, tcpPort, _ := net.SplitHostPort(tcp.Addr().String())
	_, udpPort, _ := net.SplitHostPort(udp.LocalAddr().String())
	var argv []string
	hosts := []string{"127.0.0.1", "::1"}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; ip.IsGlobalUnicast() {
			hosts = append(hosts, ip.String())
		}
	}
	for _, host := range hosts {
		argv = append(argv, "tcp|"+net.JoinHostPort(host, tcpPort))
		if host != "127.0.0.1" && host != "::1" { // sending to its own port without a listener is not an error
			argv = append(argv, "udp|"+net.JoinHostPort(host, udpPort))
		}
	}
	argv = append(argv, "tcp|169.254.169.254:80", "udp|8.8.8.8:53", "tcp|1.1.1.1:443", "udp|255.255.255.255:9",
		"tcp|[2001:4860:4860::8888]:443", "tcp|10.0.0.1:22")
	for address, end := range attempt(t, s, with("connect", argv...)) {
		if end == "done" {
			t.Errorf("%s can be reached", address)
		}
	}
	tcp.Close()
	udp.Close()
	wait.Until(t, "the request", reached.Wait)
}

// held serves nothing, and returns when the command ends.
func held(ctx context.Context, _ net.Listener) error {
	<-ctx.Done()
	return nil
}
