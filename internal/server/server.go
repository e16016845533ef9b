// Package server contains what all protocols share: routing, authentication, limits, the error
// envelope, and reading the event log for a client that waits for a turn. A protocol is a package
// below this one with a parser and an encoder.
//
// It promises: every error has a code of the closed list, and internal details are logged instead
// of returned; an object of another workspace is reported like one that does not exist; requests
// over a limit are rejected without the database. It implements no protocol besides HTTP.
package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/tracing"
	"github.com/parley-server/parley/internal/turn"
)

// Config is the configuration that all protocols share. The stores and Turns are required.
type Config struct {
	EventLog   *eventlog.Log
	Sessions   *session.Store
	Workspaces *workspace.Store
	Keys       *apikey.Store
	Turns      *turn.Service
	Skills     *skill.Store
	Agents     *agent.Store
	Files      *filestore.Store
	Callbacks  *callback.Store
	Vault      *vault.Store // for the names of secrets and their hosts; nil: none are shown

	// Accounts lets signed-in members use the API with their cookie; nil: only keys are accepted.
	Accounts *account.Store
	Limits   *ratelimit.Store    // nil: no limits
	Failures *ratelimit.Failures // failed authentications by address; nil: not limited
	// TrustedProxies may name the client of a request in X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// CORSOrigins are the origins whose pages may call the API, as browsers send them.
	CORSOrigins []string
	// Local rejects requests of foreign web pages and for foreign names: development mode.
	Local bool

	Log     *slog.Logger     // nil discards
	Metrics *metrics.Metrics // nil: nothing is counted outside
	Tracer  *tracing.Tracer  // nil: requests are not traced
	Version string           // version of the service, shown to clients; default "dev"
	BaseURL string           // public address, for links; "" uses the Host and the scheme of the connection

	Keepalive    time.Duration // silence before a stream's comment; default 15 s
	WriteTimeout time.Duration // how long a client may stop reading, or sending the body; default 30 s
	Timeout      time.Duration // how long a request may wait for the database; default 3 s
	Outage       time.Duration // how long a stream waits for a database that is away; default 15 s
}

// Server serves requests of all protocols.
type Server struct {
	Config // with its defaults

	nullParams bool                                                   // an error without a parameter has "param": null
	errorPage  func(http.ResponseWriter, *http.Request, *fault.Error) // writes errors; nil: the JSON envelope
	// user of the command that this server is inside; "": clients have keys
	command       string
	reads, counts *outage.Log
	crossOrigin   *http.CrossOriginProtection
}

// New returns a server. Streams end when the request's context ends: end it with the process.
// Keys.Run must be running for revoked keys to lose their streams.
func New(cfg Config) (*Server, error) {
	if cfg.EventLog == nil || cfg.Sessions == nil || cfg.Workspaces == nil || cfg.Keys == nil || cfg.Turns == nil || cfg.Skills == nil ||
		cfg.Agents == nil || cfg.Files == nil || cfg.Callbacks == nil {
		return nil, errors.New("server: EventLog, Sessions, Workspaces, Keys, Turns, Skills, Agents, Files and Callbacks are required")
	}
	return newServer(cfg), nil
}

// NewForCommand returns a server inside the process of a command, which calls its handlers without a
// network. Its requests need no key and have every scope; by names the user in records, such as
// "cli:anna". It serves only protocols that need no other stores than cfg has.
func NewForCommand(cfg Config, by string) *Server {
	s := newServer(cfg)
	s.command = by
	return s
}

// newServer returns a server with the defaults of its configuration.
func newServer(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	cfg.Version = cmp.Or(cfg.Version, "dev")
	for _, setting := range []struct {
		duration *time.Duration
		value    time.Duration
	}{{&cfg.Keepalive, 15 * time.Second}, {&cfg.WriteTimeout, 30 * time.Second}, {&cfg.Timeout, 3 * time.Second},
		{&cfg.Outage, 15 * time.Second}} {
		if *setting.duration <= 0 {
			*setting.duration = setting.value
		}
	}
	return &Server{Config: cfg, crossOrigin: http.NewCrossOriginProtection(), reads: outage.New(cfg.Log, "read a stream"),
		counts: outage.New(cfg.Log, "count a request")}
}

// WithNullParams returns a server whose errors without a parameter have "param": null, as OpenAI's
// do.
func (s *Server) WithNullParams() *Server {
	other := *s
	other.nullParams = true
	return &other
}

// WithErrorPage returns a server that writes errors with page in place of the JSON envelope.
func (s *Server) WithErrorPage(page func(http.ResponseWriter, *http.Request, *fault.Error)) *Server {
	other := *s
	other.errorPage = page
	return &other
}

// Brief limits a request's waits for the database.
func (s *Server) Brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// Base returns the public address of the service: the configured one, else that of this connection.
// It ignores X-Forwarded-* headers, which any client can send.
func (s *Server) Base(r *http.Request) string {
	if s.BaseURL != "" {
		return strings.TrimSuffix(s.BaseURL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// Link adds the URLs that read and cancel a turn.
func Link(base string, w workspace.Workspace, t *session.ActiveTurn) {
	at := base + "/api/v1/workspaces/" + w.Slug + "/sessions/" + t.SessionID.String()
	t.EventsURL, t.CancelURL = at+"/events", at+"/cancel"
}

// AbsoluteURL prepends base to an address that begins with a slash.
func AbsoluteURL(base, address string) string {
	if strings.HasPrefix(address, "/") {
		return base + address
	}
	return address
}

// CompleteLinks makes the download addresses of files absolute.
func CompleteLinks(base string, files []event.File) {
	for i := range files {
		files[i].DownloadURL = AbsoluteURL(base, files[i].DownloadURL)
	}
}
