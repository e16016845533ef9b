package egress

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// host is an entry of a list of hosts: api.example.com, *.example.com for one or more labels in
// front, example.com:8443 for only this port.
type host struct {
	name string // .example.com for *.example.com
	wild bool
	port uint16 // 0: the default of the scheme
}

func parseHosts(list []string) ([]host, error) {
	hosts := make([]host, 0, len(list))
	for _, text := range list {
		h, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("host %.80q: %w", text, err)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func parsePattern(text string) (h host, err error) {
	name, port, ported := strings.Cut(text, ":")
	if ported {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return h, errors.New("its port is not a number from 1 to 65535")
		}
		h.port = uint16(n)
	}
	name, h.wild = strings.CutPrefix(name, "*.")
	name, addr, err := parseHost(name)
	if err != nil || addr.IsValid() {
		return h, errors.New("it is not a name, like api.example.com or *.example.com")
	}
	if h.name = name; h.wild {
		h.name = "." + name
	}
	return h, nil
}

// matchesHost reports whether an entry covers a canonical host.
func (h host) matchesHost(scheme, name string, port uint16) bool {
	if h.port == 0 && port != defaultPort(scheme) || h.port != 0 && port != h.port {
		return false
	}
	if h.wild {
		return strings.HasSuffix(name, h.name) && len(name) > len(h.name)
	}
	return name == h.name
}
