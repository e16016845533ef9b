package schema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

var (
	clock = regexp.MustCompile(`^\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
	uuid  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// formats are the values of format that are checked; all others are annotations.
var formats = map[string]func(string) bool{
	"date-time": dateTime,
	"date":      func(s string) bool { return len(s) == 10 && dateTime(s+"T00:00:00Z") },
	"time":      func(s string) bool { return dateTime("2000-01-01T" + s) },
	"uuid":      uuid.MatchString,
	"email": func(s string) bool {
		a, err := mail.ParseAddress(s)
		return err == nil && a.Name == "" && !strings.ContainsAny(s, "<>()\r\n\t") && strings.TrimSpace(s) == s
	},
	"uri": func(s string) bool {
		u, err := url.Parse(s)
		odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }
		return err == nil && u.IsAbs() && !strings.ContainsFunc(s, odd)
	},
	"ipv4": func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	},
	"ipv6": func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is6() && a.Zone() == ""
	},
}

func dateTime(s string) bool {
	s = strings.ToUpper(s)
	if len(s) < 11 || !clock.MatchString(s[11:]) {
		return false
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}
