package app

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pulse"
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
// outage. While the database can be read, it logs when commits wait for standbys.
func (s *service) watchDatabase(ctx context.Context) error {
	var since time.Time // of the first failed reading; zero: the newest one succeeded
	lost := false
	standbys := standbyWatch{log: s.Log}
	for _, err := range s.pulse.Beats(ctx) {
		switch {
		case err == nil && lost:
			s.Log.InfoContext(ctx, "database is back", "after", time.Since(since).Round(time.Millisecond))
			since, lost = time.Time{}, false
		case err == nil:
			since = time.Time{}
			limited, cancel := context.WithTimeout(ctx, pulse.Every)
			if waits, err := eventlog.CommitsWait(limited, s.pool); err == nil {
				standbys.note(ctx, waits, time.Now())
			}
			cancel()
		case since.IsZero():
			since = time.Now()
		case !lost && ctx.Err() == nil:
			s.Log.ErrorContext(ctx, "database lost", "database", databaseName(s.pool.Config().ConnConfig.Config), "err", err)
			lost = true
		}
	}
	return nil
}

// standbyWatch logs the beginning and the end of a time in which commits wait for synchronous
// standbys. Each wait ends when its client gives up, and the next one is not seen at once.
type standbyWatch struct {
	log         *slog.Logger
	since, seen time.Time // the first and the last look that found a commit waiting; zero: none waits
}

// standbysQuiet is how long no commit may be seen waiting before the standbys are thought to be back.
const standbysQuiet = 2 * (statementTimeout + clientSlack)

func (w *standbyWatch) note(ctx context.Context, waits bool, now time.Time) {
	switch {
	case waits && w.since.IsZero():
		w.log.ErrorContext(ctx, "commits wait for synchronous standbys", "do", "start a standby, or change synchronous_standby_names")
		w.since, w.seen = now, now
	case waits:
		w.seen = now
	case !w.since.IsZero() && now.Sub(w.seen) > standbysQuiet:
		w.log.InfoContext(ctx, "no commit waits for standbys any more", "after", w.seen.Sub(w.since).Round(time.Second))
		w.since = time.Time{}
	}
}
