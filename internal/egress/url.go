package egress

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// MaxURL is the maximum length of a URL, in bytes.
const MaxURL = 2048

// CheckURL rejects a URL that requests cannot use, with *Error. It does not query DNS: the
// addresses of a name are checked with every connection.
func (g *Guard) CheckURL(raw string) error {
	if len(raw) > MaxURL {
		return invalidRequest("The URL is longer than %d bytes.", MaxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return invalidRequest("The URL cannot be parsed.")
	}
	_, err = g.canonicalURL(u)
	return err
}

// canonicalURL checks a URL and returns it with its host as it will be dialled.
func (g *Guard) canonicalURL(u *url.URL) (*url.URL, error) { return g.checkURL(u, false) }

// checkURL is canonicalURL; plain allows http to public hosts.
func (g *Guard) checkURL(u *url.URL, plain bool) (*url.URL, error) {
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, invalidRequest("The URL must begin with https://.")
	}
	if u.Opaque != "" {
		return nil, invalidRequest("The URL must name its host after //.")
	}
	if u.User != nil {
		return nil, invalidRequest("The URL must not hold a user name or a password.")
	}
	name, addr, err := parseHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	r, ruled := g.rules.findRule(name, addr, port)
	switch {
	case u.Scheme == "http" && !r.plain && (ruled || !plain):
		return nil, invalidRequest("The URL must begin with https://.")
	case !ruled && addr.IsValid() && !Public(addr):
		return nil, refuseAddress("The URL's address is not a public one.")
	case !ruled && !addr.IsValid() && isLocalName(name):
		return nil, refuseAddress("The URL's host is not a public name. The operator of the server can allow it with PARLEY_EGRESS_ALLOW.")
	case r.port == 0 && !isCommonPort(port):
		return nil, refuseAddress("The URL's port is not one for web servers.")
	}
	host := name
	if addr.IsValid() {
		host = addr.String()
	}
	c := *u
	c.Host, c.Fragment, c.RawFragment = net.JoinHostPort(host, strconv.Itoa(int(port))), "", ""
	if port == defaultPort(u.Scheme) {
		c.Host = strings.TrimSuffix(c.Host, ":"+strconv.Itoa(int(port)))
	}
	return &c, nil
}

// parseHost parses a host into its canonical form: lower case, without the trailing dot, ASCII.
// addr is valid if it is an address. A number in another notation is neither a name nor an address:
// some parsers read 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1.
func parseHost(host string) (name string, addr netip.Addr, err error) {
	if !isASCII(host) { // before ToLower, which maps some other characters to letters
		return "", addr, invalidRequest("The URL's host is not in ASCII; write international names as xn--….")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.Contains(host, "%") {
		return "", addr, invalidRequest("The URL's host must not have a zone.")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return "", addr.Unmap(), nil
	}
	if host == "" || len(host) > 253 {
		return "", addr, invalidRequest("The URL's host is missing or too long.")
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.HasPrefix(l, "-") || strings.HasSuffix(l, "-") ||
			strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", addr, invalidRequest("The URL's host is not a name.")
		}
	}
	if isNumericLabel(labels[len(labels)-1]) {
		return "", addr, invalidRequest("The URL's host looks like a number. Write an address as four decimal numbers.")
	}
	return host, addr, nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// isNumericLabel reports whether a last label makes IPv4 parsers read a name as an address.
func isNumericLabel(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// isLocalName reports whether a name has another meaning in every network.
func isLocalName(name string) bool {
	if !strings.Contains(name, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		return defaultPort(u.Scheme), nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, invalidRequest("The URL's port is not a number from 1 to 65535.")
	}
	return uint16(n), nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// others are the well-known ports above 1023 of servers that are not web servers and might
// interpret a request as their own commands.
var others = []uint16{
	1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 5900, 5984,
	6000, 6379, 6432, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 8086, 9042, 9092, 9200, 9300, 10080, 10250, 11211, 27017,
}

// isCommonPort reports whether web servers use a port.
func isCommonPort(port uint16) bool {
	if port < 1024 {
		return port == 443 || port == 80
	}
	return !slices.Contains(others, port)
}
