package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// portTries is the number of ports that development mode tries.
const portTries = 20

// listenPort opens the port. Development mode listens only to this machine, and uses the next free
// port if the default one is in use; a configured port is used or the start fails.
func (s *service) listenPort(ctx context.Context) (net.Listener, error) {
	address := s.Config.Listen
	tries := 1
	if s.DevDir != "" {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("read the address: %w", err)
		}
		if host == "" {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		if s.Config.Source("PARLEY_LISTEN") == "" {
			tries = portTries
		}
	}
	var lc net.ListenConfig
	for {
		l, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			return l, nil
		}
		if tries--; !errors.Is(err, syscall.EADDRINUSE) || tries == 0 {
			return nil, &StartError{Why: "The address " + address + " cannot be listened on:",
				Do: "Choose another with --listen or PARLEY_LISTEN.", Err: err}
		}
		taken := address
		if address, err = nextPort(taken); err != nil {
			return nil, err
		}
		s.banner.printProgress(taken + " is in use; trying " + address)
	}
}

// nextPort returns the address with the next port.
func nextPort(address string) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("read the address: %w", err)
	}
	port, err := net.LookupPort("tcp", text)
	if err != nil {
		return "", fmt.Errorf("read the port: %w", err)
	}
	return net.JoinHostPort(host, strconv.Itoa(port+1)), nil
}

// addressOf returns the address of a listener on this machine.
func addressOf(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
