package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/server/rest"
)

// listenMetrics opens the port of the server of metrics.
func (s *service) listenMetrics(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.Config.MetricsListen)
	if err != nil {
		return nil, &StartError{Why: "The address " + s.Config.MetricsListen + " cannot be listened on:",
			Do: "Choose another with PARLEY_METRICS_LISTEN.", Err: err}
	}
	return l, nil
}

// serveMetrics serves the metrics and the profiles of this process until ctx ends. They are on a
// port of their own, because they need no key.
func (s *service) serveMetrics(ctx context.Context) error {
	s.registerMetrics()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: rest.HeaderTime, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn)}
	s.Log.InfoContext(ctx, "serving metrics", "address", s.observer.Addr().String())
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(s.observer); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// registerMetrics adds the metrics that are read at each scrape.
func (s *service) registerMetrics() {
	m := s.metrics
	m.RegisterProcess()
	build := ThisBuild()
	m.Constant("parley_build_info", "Version of this process; always 1.", map[string]string{"version": build.Version, "commit": build.Commit})
	m.GaugeFunc("parley_append_queue_rows", "Rows of the log of events that wait for their commit.", func() float64 {
		return float64(s.events.QueueLength())
	})
	m.GaugeFunc("parley_listening", "1 if this process receives the notifications of the other replicas.", func() float64 {
		return oneIf(s.events.IsListening())
	})
	m.GaugeFunc("parley_turns_running", "Turns that run in this process.", func() float64 { return float64(s.turns.Running()) })
	m.GaugeFunc("parley_turn_workers", "Turns that this process may run at once.", func() float64 { return float64(s.Config.Workers) })
	m.GaugeFunc("parley_messages_admitting", "Messages that wait in this process to be stored.", func() float64 {
		return float64(s.turns.Admitting())
	})
	m.GaugeFunc("parley_sandbox_available",
		"1 if the agent of this process has commands: in its own sandbox, or on a runner that responds now.", func() float64 {
			return oneIf(s.hasCommands())
		})
	m.GaugeFunc("parley_chain_lag_seconds",
		"Time since this process last found that the chain of the log covers all turns that have ended, or since its start.", func() float64 {
			return s.chain.CoverLag().Seconds()
		})
	m.GaugeFunc("parley_audit_head_lag_seconds", "Time since a place of PARLEY_AUDIT_HEADS last had the newest head of the chain, "+
		"or since the start of this process, for the place that is furthest behind; 0 without places.", func() float64 {
		return s.chain.HeadLag().Seconds()
	})
	m.GaugeFunc("parley_pool_max_connections", "Connections to PostgreSQL that this process may open.", func() float64 {
		return float64(s.pool.Stat().MaxConns())
	})
	m.GaugeFunc("parley_pool_open_connections", "Connections to PostgreSQL that are open.", func() float64 {
		return float64(s.pool.Stat().TotalConns())
	})
	m.GaugeFunc("parley_pool_used_connections", "Connections to PostgreSQL that are in use.", func() float64 {
		return float64(s.pool.Stat().AcquiredConns())
	})
	m.CounterFunc("parley_pool_waits_total", "Uses of the pool that waited for a connection.", func() float64 {
		return float64(s.pool.Stat().EmptyAcquireCount())
	})
	m.CounterFunc("parley_pool_wait_seconds_total", "Time that uses of the pool waited for a connection.", func() float64 {
		return s.pool.Stat().EmptyAcquireWaitTime().Seconds()
	})
	m.Register(metrics.NewDatabase(s.readGauges))
}

// hasCommands reports whether commands can run now.
func (s *service) hasCommands() bool {
	if s.remote == nil {
		return s.box != nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	return s.remote.Probe(ctx) == nil
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// scrapeTimeout limits the query of a scrape, and the probe of the runner: Prometheus waits 10
// seconds by default.
const scrapeTimeout = 2 * time.Second

// readGauges reads the metrics of the database, in one statement whose parts read few rows.
func (s *service) readGauges() (g metrics.Gauges, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, `SELECT
    (SELECT jsonb_object_agg(s.state, (SELECT count(*) FROM turns t WHERE t.state = s.state))
        FROM unnest('{lined_up,queued,running,waiting}'::text[]) s (state)),
    coalesce((SELECT extract(epoch FROM clock_timestamp() - min(state_at)) FROM turns WHERE state = 'queued'), 0)::float8,
    (SELECT count(*) FROM approvals WHERE status = 'pending'),
    (SELECT coalesce(jsonb_object_agg(state, n), '{}') FROM (SELECT state, count(*) AS n FROM river_job
        WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'discarded') GROUP BY state) j),
    (SELECT count(*) FROM callback_deliveries WHERE status = 'pending'),
    coalesce((SELECT greatest(0, extract(epoch FROM clock_timestamp() - min(next_at))) FROM callback_deliveries
        WHERE status = 'pending'), 0)::float8,
    (SELECT count(*) FROM events_partition_ends()),
    (SELECT coalesce(min(ends), 0) FROM (SELECT extract(epoch FROM max(p.ends) - now()) AS ends
        FROM events_partition_ends() p GROUP BY p.delta) e)::float8,
    (SELECT count(*) FROM nodes_alive())`).
		Scan(&g.Turns, &g.OldestQueued, &g.Approvals, &g.Jobs, &g.Callbacks, &g.CallbackDelay, &g.Partitions, &g.PartitionsEnd, &g.Replicas)
	return g, err
}
