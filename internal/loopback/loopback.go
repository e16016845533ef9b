// Package loopback recognizes the names and addresses of this machine. It resolves no name.
package loopback

import (
	"net/netip"
	"strings"
)

// IsHost reports whether a host, without a port, is localhost or a loopback address.
func IsHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
