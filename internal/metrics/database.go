package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges are the metrics that the database has. Every replica reports the same.
type Gauges struct {
	Turns         map[string]float64 // by state
	OldestQueued  float64            // seconds
	Approvals     float64
	Jobs          map[string]float64 // by state
	Callbacks     float64
	CallbackDelay float64 // seconds
	Partitions    float64
	PartitionsEnd float64 // seconds
	Replicas      float64
}

// database collects Gauges at each scrape.
type database struct {
	read func() (Gauges, error)

	up, turns, oldest, approvals, jobs, callbacks, delay, partitions, ends, replicas *prometheus.Desc
}

// NewDatabase returns a collector of the metrics that read returns. If it fails, parley_database_up
// is 0 and the other metrics are absent.
func NewDatabase(read func() (Gauges, error)) prometheus.Collector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &database{
		read: read,
		up: describe("parley_database_up",
			"1 if this scrape could read the database. Without it the other metrics of the database are absent."),
		turns:  describe("parley_database_turns", "Turns that have not ended, by state: lined_up, queued, running or waiting.", "state"),
		oldest: describe("parley_database_queue_age_seconds", "Time that the oldest queued turn has waited for a worker."),
		approvals: describe("parley_database_questions",
			"Questions that wait for an answer: approvals, secrets, connections and results of tools."),
		jobs:       describe("parley_river_jobs", "Jobs of River, by state.", "state"),
		callbacks:  describe("parley_database_callbacks", "Deliveries of callbacks that are not finished."),
		delay:      describe("parley_database_callback_delay_seconds", "Time by which the oldest due delivery of a callback is late."),
		partitions: describe("parley_log_partitions", "Partitions of the log of events."),
		ends:       describe("parley_log_partitions_end_seconds", "Time until the log has no partition for new events."),
		replicas:   describe("parley_replicas", "Processes that are connected to the database."),
	}
}

// Describe implements prometheus.Collector.
func (d *database) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{d.up, d.turns, d.oldest, d.approvals, d.jobs, d.callbacks, d.delay, d.partitions, d.ends,
		d.replicas} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *database) Collect(ch chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	g, err := d.read()
	if err != nil {
		send(d.up, 0)
		return
	}
	send(d.up, 1)
	for _, state := range slices.Sorted(maps.Keys(g.Turns)) {
		send(d.turns, g.Turns[state], state)
	}
	for _, state := range []string{"available", "running", "retryable", "scheduled", "discarded"} {
		send(d.jobs, g.Jobs[state], state)
	}
	send(d.oldest, g.OldestQueued)
	send(d.approvals, g.Approvals)
	send(d.callbacks, g.Callbacks)
	send(d.delay, g.CallbackDelay)
	send(d.partitions, g.Partitions)
	send(d.ends, g.PartitionsEnd)
	send(d.replicas, g.Replicas)
}
