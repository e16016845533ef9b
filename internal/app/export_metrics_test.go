package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-server/parley/internal/metrics"
)

// RegisteredMetrics returns the metrics that a server registers, without a server.
func RegisteredMetrics() *prometheus.Registry {
	s := &service{metrics: metrics.New()}
	s.registerMetrics()
	return s.metrics.Registry()
}
