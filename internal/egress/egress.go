// Package egress makes the requests that somebody else asked for: callbacks, files
// that are fetched by address, and what an agent's tools send. It promises that none of them reaches what is
// not public (this machine, its network, a cloud's metadata service), whatever the
// address looks like, whatever DNS answers and however often it changes its mind,
// unless the operator allowed that very place. It never uses a proxy, never follows
// a redirect unasked and never reads an answer without an end.
//
// The address is checked three times: the URL when it is taken in, every answer of
// DNS before a connection is made, and the address that the kernel gets.
//
// A Run is for the requests of one turn of an agent. Its tools know secrets by their
// placeholders alone; a value is put in where a request leaves for a host that the
// secret is for, and taken out of everything that comes back.
package egress

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Config is what a Guard may be told. The zero value allows public addresses alone.
type Config struct {
	// Allow lists what may be reached beside public addresses:
	//
	//	mirror.corp                            a name, wherever DNS says it is
	//	mirror.corp:8443                       only this port, which may be any
	//	mirror.corp:443=10.0.0.7:8443          and there, without DNS
	//	10.1.0.0/16, 10.0.0.7, [fd00::7]:8443  addresses
	//
	// With http:// before it the place may be reached without TLS, too.
	Allow    []string
	Roots    *x509.CertPool // default: the system's
	Resolver *net.Resolver  // default: Go's own

	// BodyMemory bounds the bytes of request bodies that runs hold in memory to put secrets in, all
	// runs together; default: DefaultBodyMemory, at least MaxSearchedBody. A run gets at most half,
	// or MaxSearchedBody.
	BodyMemory int64
}

// Guard decides where requests may go. It is safe for concurrent use.
type Guard struct {
	rules    rules
	roots    *x509.CertPool
	resolver *net.Resolver
	bodies   *bodyBudget
	share    int64 // of bodies, for one run
}

// New makes a guard. It tells everything that is wrong with the rules at once.
func New(cfg Config) (*Guard, error) {
	memory := cmp.Or(max(cfg.BodyMemory, 0), DefaultBodyMemory)
	g := &Guard{roots: cfg.Roots, resolver: cfg.Resolver, bodies: newBodyBudget(memory), share: memory / 2}
	if g.resolver == nil {
		g.resolver = &net.Resolver{PreferGo: true}
	}
	var wrong []error
	for _, text := range cfg.Allow {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		r, err := parseRule(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%q: %w", text, err))
			continue
		}
		g.rules = append(g.rules, r)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return g, nil
}

// Error is a refusal. Its reason is a sentence for whoever asked for the URL; it
// tells nothing about what DNS answered.
type Error struct {
	Reason   string
	decision string // the word for it in the record of a run
	status   int    // what a program sees that asked through a proxy
}

// Error implements error.
func (e *Error) Error() string { return "request refused: " + e.Reason }

// Refused is a refusal by whoever records requests (see RunConfig). Its reason is a
// sentence for whoever made the request.
func Refused(format string, args ...any) error {
	return newRefusal(RefusedRequest, http.StatusForbidden, format, args...)
}

func invalidRequest(format string, args ...any) error {
	return newRefusal(RefusedRequest, http.StatusBadRequest, format, args...)
}

// refuseAddress is for what is not public, whatever the request says.
func refuseAddress(format string, args ...any) error {
	return newRefusal(RefusedAddress, http.StatusForbidden, format, args...)
}

func newRefusal(decision string, status int, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), decision, status}
}
