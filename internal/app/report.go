package app

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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
	s.Log.InfoContext(ctx, "ready", "url", s.url, "base_url", s.baseURL(), "model", s.defaultModel(), "database",
		databaseName(s.pool.Config().ConnConfig.Config),
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
// outage, nor is a database that can be read while commits wait for standbys.
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
			if standbys.isDue() {
				standbys.look(ctx, s.pool)
			}
		case since.IsZero():
			since = time.Now()
		case !lost && ctx.Err() == nil && !s.commitsHoldThePool(ctx, &standbys):
			s.Log.ErrorContext(ctx, "database lost", "database", databaseName(s.pool.Config().ConnConfig.Config), "err", err)
			lost = true
		}
	}
	return nil
}

// commitsHoldThePool reports whether a failed reading has that reason: the connections of the pool
// are those of commits that wait for standbys.
func (s *service) commitsHoldThePool(ctx context.Context, standbys *standbyWatch) bool {
	if standbys.waiting && !standbys.isDue() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pulse.Every)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(ctx))
	standbys.look(ctx, conn)
	return standbys.waiting
}

// standbyWatch logs the beginning and the end of a time in which commits wait for synchronous
// standbys.
type standbyWatch struct {
	log     *slog.Logger
	waiting bool
	since   time.Time // of waiting
	next    time.Time // of the next look
}

// standbysEvery is the time between two looks.
const standbysEvery = 5 * time.Second

func (w *standbyWatch) isDue() bool { return !time.Now().Before(w.next) }

// look looks for commits that wait, or, after it has found one, whether the standbys have everything
// by now.
func (w *standbyWatch) look(ctx context.Context, db eventlog.Querier) {
	w.next = time.Now().Add(standbysEvery)
	ctx, cancel := context.WithTimeout(ctx, pulse.Every)
	defer cancel()
	if w.waiting {
		if eventlog.AwaitStandbys(ctx, db) == nil {
			w.log.InfoContext(ctx, "commits no longer wait for standbys", "after", time.Since(w.since).Round(time.Second))
			w.waiting = false
		}
		return
	}
	if waits, err := eventlog.IsCommitWaiting(ctx, db); err == nil && waits {
		w.log.ErrorContext(ctx, "commits wait for synchronous standbys", "do", "start a standby, or change synchronous_standby_names")
		w.waiting, w.since = true, time.Now()
	}
}
