// Package egress makes requests on behalf of others: callbacks, files that are fetched by URL, and
// requests of an agent's tools. It promises that none of them reaches an address that is not public
// (this machine, its network, a cloud's metadata service), for any URL and for any DNS answer at
// any time, unless the operator allowed that destination. It never uses a proxy, follows a redirect
// only on request and limits every response.
//
// The address is checked three times: the URL when it is received, every DNS answer before a
// connection is made, and the address that the kernel gets.
//
// A Run handles the requests of one turn of an agent. Its tools see only the placeholders of
// secrets; a value is inserted when a request leaves for a host of the secret, and removed from
// every response.
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

// Config configures a Guard. The zero value allows only public addresses.
type Config struct {
	// Allow lists the destinations that may be reached besides public addresses:
	//
	//	mirror.corp                            a name, at any address that DNS returns
	//	mirror.corp:8443                       only this port, which may be any
	//	mirror.corp:443=10.0.0.7:8443          at this address, without DNS
	//	10.1.0.0/16, 10.0.0.7, [fd00::7]:8443  addresses
	//
	// A destination with the prefix http:// may also be reached without TLS.
	Allow    []string
	Roots    *x509.CertPool // default: the system's
	Resolver *net.Resolver  // default: Go's own

	// BodyMemory limits the bytes of request bodies that all runs together hold in memory to insert
	// secrets; default: DefaultBodyMemory, at least MaxSearchedBody. A run gets at most half, or
	// MaxSearchedBody.
	BodyMemory int64
}

// Guard decides which destinations requests may reach. It is safe for concurrent use.
type Guard struct {
	rules    rules
	roots    *x509.CertPool
	resolver *net.Resolver
	bodies   *bodyBudget
	share    int64 // bodies of one run
}

// New returns a guard. Its error lists all violations of the rules.
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

// Error is a refusal. Its reason is a sentence for the sender of the URL; it reveals nothing about
// DNS answers.
type Error struct {
	Reason   string
	decision string // the decision in the record of a run
	status   int    // status for a program that uses the proxy
}

// Error implements error.
func (e *Error) Error() string { return "request refused: " + e.Reason }

// Refused returns a refusal by the recorder of requests (see RunConfig). Its reason is a sentence
// for the sender of the request.
func Refused(format string, args ...any) error {
	return newRefusal(RefusedRequest, http.StatusForbidden, format, args...)
}

func invalidRequest(format string, args ...any) error {
	return newRefusal(RefusedRequest, http.StatusBadRequest, format, args...)
}

// refuseAddress returns the refusal of an address that is not public.
func refuseAddress(format string, args ...any) error {
	return newRefusal(RefusedAddress, http.StatusForbidden, format, args...)
}

func newRefusal(decision string, status int, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), decision, status}
}
