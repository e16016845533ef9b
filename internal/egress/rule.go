package egress

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// rule is one destination that the operator allows.
type rule struct {
	plain  bool           // http is allowed
	host   string         // a name; "" if prefix is used
	prefix netip.Prefix   // addresses
	port   uint16         // 0: the ports that every request may use
	pin    netip.AddrPort // the name's address, instead of DNS
}

type rules []rule

// parseRule parses an entry of Config.Allow.
func parseRule(text string) (r rule, err error) {
	rest, plain := strings.CutPrefix(text, "http://")
	r.plain = plain
	place, pin, pinned := strings.Cut(rest, "=")
	if r.prefix, err = netip.ParsePrefix(place); err == nil {
		r.prefix = r.prefix.Masked()
	} else {
		host, port := place, ""
		if h, p, err := net.SplitHostPort(place); err == nil {
			if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
				return r, errors.New("its port is not a number from 1 to 65535")
			}
			host, port = h, p
		} else {
			host = strings.TrimSuffix(strings.TrimPrefix(place, "["), "]")
		}
		n, _ := strconv.ParseUint(port, 10, 16)
		r.port = uint16(n)
		name, addr, err := parseHost(host)
		if err != nil {
			return r, errors.New("it is neither a name nor an address, like mirror.corp:8443 or 10.1.0.0/16")
		}
		if r.host = name; addr.IsValid() {
			r.host, r.prefix = "", netip.PrefixFrom(addr, addr.BitLen())
		}
	}
	if pinned {
		if r.pin, err = netip.ParseAddrPort(pin); err != nil || r.host == "" || r.port == 0 {
			return r, errors.New("a pin looks like mirror.corp:443=10.0.0.7:8443")
		}
	}
	return r, nil
}

// findRule returns the rule for a name, or for an address if addr is valid.
func (rs rules) findRule(name string, addr netip.Addr, port uint16) (rule, bool) {
	for _, r := range rs {
		if r.port != 0 && r.port != port {
			continue
		}
		if addr.IsValid() && r.host == "" && r.prefix.Contains(addr) || !addr.IsValid() && r.host == name {
			return r, true
		}
	}
	return rule{}, false
}
