package vault

import (
	"net/url"
	"strings"
)

// MayReach reports whether the hosts of a credential allow it in a header of requests to an address.
func (c Credential) MayReach(u *url.URL) bool {
	if u.Scheme != "https" && !c.AllowHTTP {
		return false
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	for _, allowed := range c.Hosts {
		if suffix, wild := strings.CutPrefix(allowed, "*"); host == allowed || wild && strings.HasSuffix(host,
			suffix) && len(host) > len(suffix) {
			return true
		}
	}
	return false
}

// HostFlags returns the flags of parley secrets set that let a credential reach u.
func HostFlags(u *url.URL) string {
	if u.Scheme == "http" {
		return "--host " + u.Host + " --allow-http"
	}
	return "--host " + u.Host
}
