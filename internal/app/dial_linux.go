package app

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT: how long, in milliseconds, sent data may stay unacknowledged.
const tcpUserTimeout = 0x12

// setUserTimeout makes a connection fail if the other side goes silent in the middle of a
// statement, where keep-alives do not help.
func setUserTimeout(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var err error
	if ctlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, 5000)
	}); ctlErr != nil {
		return ctlErr
	}
	return err
}
