package app

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// logReady logs that the service is ready, and what it runs with.
func (s *service) logReady(ctx context.Context) {
	sandbox := "off"
	switch {
	case s.box != nil:
		sandbox = "bubblewrap"
	case s.remote != nil:
		sandbox = s.Config.Runner
	}
	s.Log.InfoContext(ctx, "ready", "url", s.url, "base_url", s.baseURL(), "model", s.defaultModel(), "database", databaseName(s.pool.Config().ConnConfig.Config),
		"sandbox", sandbox, "workers", s.Config.Workers, "version", ThisBuild().Version)
}

// databaseName returns the hosts and the name of a database, without the user and the password.
func databaseName(c pgconn.Config) string {
	hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, other := range c.Fallbacks {
		host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))
		if hosts[len(hosts)-1] != host { // without and with TLS
			hosts = append(hosts, host)
		}
	}
	return strings.Join(hosts, ",") + "/" + c.Database
}

// watchDatabase logs when the database is lost, and when it is back. One slow reading is not an
// outage.
func (s *service) watchDatabase(ctx context.Context) error {
	var since time.Time // of the first failed reading; zero: the newest one succeeded
	lost := false
	for _, err := range s.pulse.Beats(ctx) {
		switch {
		case err == nil && lost:
			s.Log.InfoContext(ctx, "database is back", "after", time.Since(since).Round(time.Millisecond))
			since, lost = time.Time{}, false
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case !lost && ctx.Err() == nil:
			s.Log.ErrorContext(ctx, "database lost", "database", databaseName(s.pool.Config().ConnConfig.Config), "err", err)
			lost = true
		}
	}
	return nil
}
