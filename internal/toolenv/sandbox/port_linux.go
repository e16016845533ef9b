package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// port is an address in the sandbox that the service listens on.
type port struct {
	at  unix.SockaddrInet4
	tcp func(ctx context.Context, l net.Listener) error
	udp func(ctx context.Context, c net.PacketConn) error // one of them
}

func listPorts(c Command) (list []port) {
	itself := [4]byte{127, 0, 0, 1}
	if c.Serve != nil {
		list = append(list, port{at: unix.SockaddrInet4{Port: 3128, Addr: itself}, tcp: c.Serve})
	}
	if c.Direct != nil {
		list = append(list,
			port{at: unix.SockaddrInet4{Port: 443}, tcp: c.Direct.TLS},
			port{at: unix.SockaddrInet4{Port: 80}, tcp: c.Direct.Plain},
			port{at: unix.SockaddrInet4{Port: 53, Addr: itself}, udp: c.Direct.DNS})
	}
	return list
}

// socketType returns the type of the port's socket.
func (p port) socketType() int {
	if p.udp != nil {
		return unix.SOCK_DGRAM
	}
	return unix.SOCK_STREAM
}

// service is an open port.
type service struct {
	io.Closer
	serve func(ctx context.Context) error
}

// openService opens a port on a socket that was made inside. The kernel checks whether the process
// that binds may use low ports in the socket's network. The service may: root may in every network,
// and a user in all namespaces they made. No process inside ever has this privilege.
func (p port) openService(socket *os.File) (s service, err error) {
	if same, err := isOurSocket(socket); err != nil || same {
		return s, errors.Join(errors.New("it has no network of its own"), err)
	}
	if err := unix.Bind(int(socket.Fd()), &p.at); err != nil {
		return s, fmt.Errorf("bind port %d: %w", p.at.Port, err)
	}
	if p.udp != nil {
		c, err := net.FilePacketConn(socket)
		return service{c, func(ctx context.Context) error { return p.udp(ctx, c) }}, err
	}
	if err := unix.Listen(int(socket.Fd()), 128); err != nil {
		return s, fmt.Errorf("listen on port %d: %w", p.at.Port, err)
	}
	l, err := net.FileListener(socket)
	return service{l, func(ctx context.Context) error { return p.tcp(ctx, l) }}, err
}

// isOurSocket reports whether a socket belongs to the network of this process. Kernels before 5.14
// do not report it.
func isOurSocket(socket *os.File) (bool, error) {
	theirs, err := unix.GetsockoptUint64(int(socket.Fd()), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == unix.ENOPROTOOPT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	own, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return theirs == own, err
}
