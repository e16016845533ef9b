package egress

import "net/netip"

// special are the ranges of IPv4, and of IPv6's global unicast space, that are not the public
// internet.
var special = parsePrefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carrier-grade NAT
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's host
	"169.254.0.0/16",   // link-local: the metadata service of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
	"2001::/23",        // protocol assignments; Teredo is 2001::/32
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4, which holds an IPv4 address
	"3fff::/20",        // documentation
)

// global is IPv6's global unicast space. All addresses outside it are rejected: loopback,
// unspecified, IPv4-compatible, NAT64, discard, unique local, link-local, site-local, multicast.
var global = netip.MustParsePrefix("2000::/3")

func parsePrefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// Public reports whether an address belongs to the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
