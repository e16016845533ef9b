package permission

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

// request is a pattern of http_request: a method, a host, and paths below it. It matches only
// https.
type request struct {
	method, host string
	path         glob
}

var (
	methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	host    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?$`)
)

// parseRequest parses the argument of http_request(…).
func parseRequest(argument string) (matcher, []fault.Violation) {
	method, address, spaced := strings.Cut(argument, " ")
	name, rest, slash := strings.Cut(address, "/")
	var vs []fault.Violation
	if !slices.Contains(methods, method) || !spaced {
		v := newViolation("enum", "A pattern of http_request begins with a method in capitals: GET api.example.com/**.")
		for _, m := range methods {
			v.Allowed = append(v.Allowed, m)
		}
		vs = append(vs, v)
	}
	name = strings.TrimSuffix(name, ":443")
	switch {
	case strings.Contains(address, "://"):
		vs = append(vs, newViolation("format", "The address has no scheme: patterns speak of https alone."))
		return nil, vs
	case !host.MatchString(name):
		vs = append(vs,
			newViolation("format", "The host is written out in small letters, with a port if it is not 443, and without *: api.example.com."))
	}
	r := request{method: method, host: name}
	if !slash {
		v := newViolation("format", "The address has a path: api.example.com/v1/items, or api.example.com/** for all of the host.")
		if len(vs) == 0 {
			v.Suggestion = fmt.Sprintf("http_request(%s %s/**)", method, name)
		}
		return nil, append(vs, v)
	}
	if strings.ContainsAny(rest, "?#%;") {
		return nil, append(vs, newViolation("format", "The path has no query, no fragment and none of % and ;. A final ** covers queries."))
	}
	if rest == "" || rest == "**" { // the root, or all of the host
		r.path = glob{segments: []string{rest}, hidden: true}
		return r, vs
	}
	g, wrongs := parseGlob(strings.TrimSuffix(rest, "/"))
	if strings.HasSuffix(rest, "/") {
		g.segments = append(g.segments, "")
	}
	g.hidden = true
	r.path = g
	return r, append(vs, wrongs...)
}

func (r request) String() string { return r.method + " " + r.host + "/" + r.path.String() }

func (r request) matches(input json.RawMessage) bool {
	c, ok := readCall(input)
	if !ok || c.scheme != "https" || c.method != r.method || c.host != r.host {
		return false
	}
	if c.query && r.path.segments[len(r.path.segments)-1] != "**" {
		return false
	}
	return r.path.coversPath(c.path)
}

// suggestRequest proposes the folder for read-only requests, or else the address itself.
func suggestRequest(input json.RawMessage) matcher {
	c, ok := readCall(input)
	if !ok || c.scheme != "https" || !slices.Contains(methods, c.method) {
		return nil
	}
	at := c.host + "/" + c.path
	proposals := []string{at}
	if c.method == "GET" || c.method == "HEAD" {
		proposals = []string{at[:strings.LastIndexByte(at, '/')] + "/**", at}
	}
	for _, p := range proposals {
		if m, vs := parseRequest(c.method + " " + p); len(vs) == 0 && m.matches(input) && !strings.Contains(at, "*") {
			return m
		}
	}
	return nil
}
