package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/vault"
)

// The limits of a run.
const (
	MaxConnections  = 128              // concurrent connections from the run's commands
	MaxRequestURL   = 8 << 10          // bytes of a request's URL
	MaxHeader       = 64 << 10         // bytes of a header, of a request and of a response; also of a query with its secrets
	MaxRequestBody  = 256 << 20        // bytes that one request sends
	MaxSearchedBody = 8 << 20          // the same for a body that may contain a secret, which is held in memory
	MaxPlaceholders = 1000             // in such a body
	MaxAnswer       = 256 << 20        // bytes of a response, after decompression
	RequestTime     = 10 * time.Minute // for a request, up to the last byte of the response
	AnswerTime      = 2 * time.Minute  // until a response begins
	HandshakeTime   = 10 * time.Second // for TLS, on either side
	HeaderTime      = 30 * time.Second // for a program to send a header
	IdleTime        = 2 * time.Minute  // for an idle connection of a program
)

// The decisions that a run records.
const (
	Sent           = "sent"
	RefusedHost    = "refused_host"    // not on the list
	RefusedAddress = "refused_address" // not public
	RefusedRequest = "refused_request" // a request without a valid target
	RefusedAnswer  = "refused_answer"  // it was sent; the response cannot be passed on
	Failed         = "failed"          // it was sent, or was about to be, without a response
)

// Credential is a secret that a run may use. The run's tools write its placeholder.
type Credential struct {
	Name        string
	Version     int
	Placeholder string // letters, digits and _, from 16 to 64
	Value       vault.Value
	Hosts       []string // the only hosts that receive the value, by https, in values of headers
	InQuery     bool     // and in the query
	InBody      bool     // and in the body
	AllowHTTP   bool     // and without TLS
}

// RunConfig configures the permissions of a run.
type RunConfig struct {
	Credentials []Credential
	Redact      *redact.Redactor // for responses: everything that must be hidden, not only this run's values
	// RedactRecords redacts the records, which the run's tools do not see; default: Redact.
	RedactRecords *redact.Redactor
	// further hosts that may be reached besides those of the credentials: "api.example.com",
	// "*.example.com", "example.com:8443"
	Hosts      []string
	Public     bool          // every public host is allowed
	AnswerTime time.Duration // until a response begins; default: AnswerTime

	// Record is called before a request leaves, and for rejected requests; an error keeps the
	// request from leaving, and one made by Refused counts as a refusal. Without an error done is
	// called once with the response's status, or 0, and the final decision.
	Record func(ctx context.Context, r Request) (done func(status int, decision string), err error)
}

// Request is the record of a request. It never contains a value.
type Request struct {
	Method, Scheme, Host string
	Path                 string // redacted, without the query
	Credentials          []Use
	Refused              []string // secrets with a placeholder in the request, but not for this host or this place
	Decision             string
}

// Use is a secret that a request contained.
type Use struct {
	Name    string
	Version int
}

// Run makes the requests of one turn: those passed to Do and those of programs that use Serve as
// their proxy, under the same rules. The rules of the guard limit all requests, the run's list
// those of its workspace; both must allow a request.
type Run struct {
	cfg         RunConfig
	guard       *Guard
	open        *Guard // for public hosts without an entry in a list: excludes the operator's networks
	hosts       []host
	credentials []credential
	transport   *http.Transport
	slots       chan struct{} // connections
	bodies      *bodyBudget   // the run's part of the guard's budget
	maxBody     int64         // MaxRequestBody
	maxAnswer   int64         // MaxAnswer
	names       names         // hosts for programs without a proxy
	authority   func() (*authority, error)
	ended       context.Context
	end         context.CancelFunc
}

type credential struct {
	Credential
	hosts []host
	lines bool             // only a body can carry the value
	own   *redact.Redactor // redactor for a value that can be guessed; nil: the run's redactor finds it
}

// Run starts a run. Close ends it.
func (g *Guard) Run(cfg RunConfig) (*Run, error) {
	hosts, err := parseHosts(cfg.Hosts)
	if err != nil {
		return nil, err
	}
	r := &Run{cfg: cfg, guard: g, hosts: hosts, slots: make(chan struct{}, MaxConnections), bodies: newBodyBudget(g.share),
		maxBody: MaxRequestBody, maxAnswer: MaxAnswer, authority: sync.OnceValues(newAuthority)}
	if r.cfg.RedactRecords == nil {
		r.cfg.RedactRecords = cfg.Redact
	}
	for i, c := range cfg.Credentials {
		hosts, err := parseHosts(c.Hosts)
		if err != nil {
			return nil, fmt.Errorf("credential %s: %w", c.Name, err)
		}
		if err := c.checkAmong(cfg.Credentials[:i]); err != nil {
			return nil, fmt.Errorf("credential %s: %w", c.Name, err)
		}
		own := credential{Credential: c, hosts: hosts, lines: c.Value.HasLines()}
		if c.Value.IsGuessable() {
			own.own = redact.New(redact.Secret{Name: c.Name, Value: c.Value.Reveal()})
		}
		r.credentials = append(r.credentials, own)
		r.hosts = append(r.hosts, hosts...)
	}
	r.open = &Guard{roots: g.roots, resolver: g.resolver, rules: slices.DeleteFunc(slices.Clone(g.rules), func(r rule) bool {
		return r.host == ""
	})}
	sessions := tls.NewLRUClientSessionCache(0) // every request makes a handshake
	r.transport = newTransport(r.dialHost, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: g.roots, ClientSessionCache: sessions},
		cmp.Or(cfg.AnswerTime, AnswerTime))
	r.transport.MaxConnsPerHost = MaxConnections
	r.ended, r.end = context.WithCancel(context.Background())
	return r, nil
}

// checkAmong rejects a credential that could be mistaken for another.
func (c Credential) checkAmong(others []Credential) error {
	p := c.Placeholder
	if len(p) < 16 || len(p) > 64 || strings.Trim(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return errors.New("its placeholder is not one")
	}
	for _, o := range others {
		if strings.Contains(p, o.Placeholder) || strings.Contains(o.Placeholder, p) {
			return fmt.Errorf("its placeholder is like that of %s", o.Name)
		}
	}
	if len(c.Value.Reveal()) == 0 {
		return errors.New("it has no value")
	}
	return nil
}

// Close ends all requests of the run.
func (r *Run) Close() { r.end() }

// admitURL checks whether a URL may be requested, and returns it as it will be requested.
func (r *Run) admitURL(u *url.URL) (*url.URL, error) {
	c, err := r.guard.checkURL(u, true)
	if err != nil {
		return nil, err
	}
	name, port := targetOf(c)
	switch {
	case r.isListed(c.Scheme, name, port):
		return c, nil
	case r.cfg.Public:
		return r.open.checkURL(u, true)
	}
	return nil, newRefusal(RefusedHost, http.StatusForbidden,
		"%s is not on the list of hosts that this workspace may reach. An administrator can add it: parley egress create %s", c.Host, c.Host)
}

func (r *Run) isListed(scheme, name string, port uint16) bool {
	return slices.ContainsFunc(r.hosts, func(h host) bool { return h.matchesHost(scheme, name, port) })
}

// targetOf returns the destination of a canonical URL.
func targetOf(u *url.URL) (name string, port uint16) {
	port = defaultPort(u.Scheme)
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		port = uint16(n)
	}
	return u.Hostname(), port
}

// dialHost connects to a host that was admitted.
func (r *Run) dialHost(ctx context.Context, network, hostport string) (net.Conn, error) {
	name, text, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	if r.isListed("https", name, uint16(port)) || r.isListed("http", name, uint16(port)) {
		return r.guard.DialContext(ctx, network, hostport)
	}
	return r.open.DialContext(ctx, network, hostport)
}
