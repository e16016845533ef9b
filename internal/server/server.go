// Package server is what every way in does before and around its own protocol. It names
// requests and tells failures in the one envelope; it finds out who asks, what they may do
// and how often; and it reads the log for whoever waits for a turn.
//
// It promises: every error that is told has a code of the closed list, and what nobody is to
// see is logged instead; an object of another workspace answers like one that does not
// exist; a flood is refused without the database. It speaks no protocol beyond HTTP.
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
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Config is what every way in needs. Workspaces, Keys and Sessions are required.
type Config struct {
	Sessions   *session.Store
	Workspaces *workspace.Store
	Keys       *apikey.Store

	Limits   *ratelimit.Store    // nil: no limits
	Failures *ratelimit.Failures // of keys that are not valid, by address; nil: not limited
	// TrustedProxies may name the client of a request in X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// Local rejects requests of foreign web pages and for foreign names: development mode.
	Local bool

	Log     *slog.Logger // nil discards
	Version string       // of the service, as clients are told it; default "dev"
	BaseURL string       // public address, for links; "" follows the Host and the scheme of the connection
	Nulls   bool         // an error about no parameter says "param": null, as OpenAI's do

	Keepalive    time.Duration // silence before a stream's comment; default 15 s
	WriteTimeout time.Duration // how long a reader, or the sender of a body, may stand still; default 30 s
	Timeout      time.Duration // how long a request may wait for the database; default 3 s
	Outage       time.Duration // how long who waits for events outlives the database; default 15 s
}

// Door is where requests come in. Each way in has its own.
type Door struct {
	Config // with its defaults

	reads, counts *outage.Log
}

// New makes a door. Keys.Run must be running for revoked keys to lose what they have open.
func New(cfg Config) (*Door, error) {
	if cfg.Sessions == nil || cfg.Workspaces == nil || cfg.Keys == nil {
		return nil, errors.New("door: Sessions, Workspaces and Keys are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Version = cmp.Or(cfg.Version, "dev")
	for _, f := range []struct {
		d *time.Duration
		v time.Duration
	}{{&cfg.Keepalive, 15 * time.Second}, {&cfg.WriteTimeout, 30 * time.Second}, {&cfg.Timeout, 3 * time.Second}, {&cfg.Outage, 15 * time.Second}} {
		if *f.d <= 0 {
			*f.d = f.v
		}
	}
	return &Door{Config: cfg, reads: outage.New(cfg.Log, "read a stream"), counts: outage.New(cfg.Log, "count a request")}, nil
}

// Brief bounds what a request waits for the database.
func (d *Door) Brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.Timeout)
}

// Base is the public address of the service: as configured, else as this connection
// shows it. Anybody can send X-Forwarded-* headers, so they count for nothing.
func (d *Door) Base(r *http.Request) string {
	if d.BaseURL != "" {
		return strings.TrimSuffix(d.BaseURL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// Link completes what is told of a turn with where to read or end it.
func Link(base string, w workspace.Workspace, t *session.ActiveTurn) {
	at := base + "/api/v1/workspaces/" + w.Slug + "/sessions/" + t.SessionID.String()
	t.EventsURL, t.CancelURL = at+"/events", at+"/cancel"
}

// Absolute completes an address that a store could only begin with a slash.
func Absolute(base, address string) string {
	if strings.HasPrefix(address, "/") {
		return base + address
	}
	return address
}

// Complete is Absolute for files that are shown.
func Complete(base string, files []event.File) {
	for i := range files {
		files[i].DownloadURL = Absolute(base, files[i].DownloadURL)
	}
}
