// Package metrics holds the Prometheus metrics of one process. The parts of the service count in
// its fields; /metrics serves them.
//
// It promises that no label has a value that a caller chooses: no workspace, session, key, or name
// of a tool or model. docs/reference/metrics.md lists every metric.
package metrics

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of a process. Make them with New.
type Metrics struct {
	Requests       *prometheus.CounterVec   // route, method, status
	RequestTime    *prometheus.HistogramVec // route
	Streams        prometheus.Gauge
	StreamsClosed  *prometheus.CounterVec // reason
	Delivered      prometheus.Counter
	DeliveryLag    prometheus.Histogram
	AppendTime     prometheus.Histogram
	Appended       prometheus.Counter
	Deltas         prometheus.Counter
	AppendFailures prometheus.Counter

	TurnsStarted  prometheus.Counter
	TurnsFinished *prometheus.CounterVec   // state, error
	TurnTime      *prometheus.HistogramVec // state
	FirstText     prometheus.Histogram
	TurnWait      prometheus.Histogram
	Handovers     *prometheus.CounterVec // reason
	Takeovers     *prometheus.CounterVec // reason
	LeasesLost    prometheus.Counter
	LogsBroken    prometheus.Counter
	Renewals      *prometheus.CounterVec // outcome

	ModelCalls      *prometheus.CounterVec   // provider, outcome
	ModelTime       *prometheus.HistogramVec // provider
	ModelFirst      *prometheus.HistogramVec // provider
	ModelRunning    prometheus.Gauge
	Tokens          *prometheus.CounterVec   // provider, kind
	Cost            *prometheus.CounterVec   // provider
	Embeddings      *prometheus.CounterVec   // use, outcome
	EmbeddingTokens *prometheus.CounterVec   // use
	ToolCalls       *prometheus.CounterVec   // tool, outcome
	ToolTime        *prometheus.HistogramVec // tool
	Commands        *prometheus.CounterVec   // outcome
	EgressRequests  *prometheus.CounterVec   // outcome
	Callbacks       *prometheus.CounterVec   // outcome

	registry *prometheus.Registry
}

var (
	fast = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}   // seconds of a commit or a delivery
	slow = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600} // seconds of a turn or a model call
)

// New returns the metrics of a process, all zero.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.Requests = m.counters("parley_http_requests_total", "HTTP requests by the pattern of their path, when they end.", "route",
		"method", "status")
	m.RequestTime = m.histograms("parley_http_request_duration_seconds", "Duration of HTTP requests that are not streams.", fast, "route")
	m.Streams = m.gauge("parley_streams", "Open event streams.")
	m.StreamsClosed = m.countersOf("parley_streams_closed_total",
		"Event streams that ended, by reason: finished, client_gone, too_slow, key_revoked, events_removed or failed.",
		"reason", "finished", "client_gone", "too_slow", "key_revoked", "events_removed", "failed")
	m.Delivered = m.counter("parley_events_delivered_total", "Events that were written to readers as they were committed.")
	m.DeliveryLag = m.histogram("parley_delivery_lag_seconds",
		"Time from the commit of an event to its write to the reader's socket, for events newer than the reader.", fast)
	m.AppendTime = m.histogram("parley_append_duration_seconds", "Duration of the commit of a batch of events.", fast)
	m.Appended = m.counter("parley_events_appended_total", "Rows that group commits added to the log of events.")
	m.Deltas = m.counter("parley_text_deltas_total", "Text deltas of models. Adjacent deltas share a row.")
	m.AppendFailures = m.counter("parley_append_failures_total",
		"Batches of events that could not be committed; their turns continue from the log.")

	m.TurnsStarted = m.counter("parley_turns_started_total", "Messages that were accepted.")
	m.TurnsFinished = m.counters("parley_turns_finished_total",
		"Turns that ended, by state and by the code of their error; none if they have none.", "state", "error")
	m.TurnTime = m.histograms("parley_turn_duration_seconds", "Time from a message to the end of its turn, including waits for answers.",
		slow, "state")
	m.FirstText = m.histogram("parley_turn_first_text_seconds", "Time from a message to the first text of the model.", slow)
	m.TurnWait = m.histogram("parley_turn_queue_wait_seconds", "Time from queueing a turn to its claim by a worker.", fast)
	m.Handovers = m.countersOf("parley_turn_handovers_total",
		"Turns that a worker put back into the queue, by reason: drain, stalled or database.", "reason", "drain", "stalled", "database")
	m.Takeovers = m.countersOf("parley_turn_takeovers_total",
		"Turns taken from another worker, by reason: dead (its process is gone) or lease (its lease ended).", "reason", "dead", "lease")
	m.LeasesLost = m.counter("parley_leases_lost_total", "Turns whose worker stopped because its lease was lost or could not be renewed.")
	m.LogsBroken = m.counter("parley_broken_logs_total",
		"Turns that were stopped because their stored events are not in order, which is a bug or a change of the log by others.")
	m.Renewals = m.countersOf("parley_lease_renewals_total", "Renewals of the leases of this process, by outcome: ok or failed.",
		"outcome", "ok", "failed")

	m.ModelCalls = m.counters("parley_model_calls_total",
		"Requests to model providers, by outcome: ok, failed, overloaded or canceled. The provider of a workspace is own.", "provider", "outcome")
	m.ModelTime = m.histograms("parley_model_call_duration_seconds", "Duration of requests to model providers.", slow, "provider")
	m.ModelFirst = m.histograms("parley_model_first_chunk_seconds",
		"Time from a request to a model provider to the first chunk of its reply.", slow, "provider")
	m.ModelRunning = m.gauge("parley_model_calls_running", "Requests to model providers that are running.")
	m.Tokens = m.counters("parley_model_tokens_total", "Tokens by kind: input, cached_input, cache_write (both also in input) or output.",
		"provider", "kind")
	m.Cost = m.counters("parley_model_cost_usd_total", "Cost of replies in US dollars, for models with a known price.", "provider")
	m.Embeddings = m.counters("parley_embedding_requests_total",
		"Requests for vectors, by use, index (of passages) or search (of queries), and by outcome: ok or failed.", "use", "outcome")
	m.EmbeddingTokens = m.counters("parley_embedding_tokens_total", "Tokens of texts whose vectors were made, by use: index or search.", "use")
	m.ToolCalls = m.counters("parley_tool_calls_total", "Tool calls, by outcome: ok or failed. Tools of workspaces and callers are own.",
		"tool", "outcome")
	m.ToolTime = m.histograms("parley_tool_call_duration_seconds", "Duration of tool calls.", slow, "tool")
	m.Commands = m.countersOf("parley_sandbox_commands_total",
		"Commands in the sandbox, by outcome: ok, exit (not 0), killed or failed (of the sandbox).",
		"outcome", "ok", "exit", "killed", "failed")
	m.EgressRequests = m.countersOf("parley_egress_requests_total", "Requests of agents to hosts outside, by outcome: ok, refused or failed.",
		"outcome", "ok", "refused", "failed")
	m.Callbacks = m.countersOf("parley_callback_attempts_total", "Attempts to deliver callbacks, by outcome: done, retry or failed.",
		"outcome", "done", "retry", "failed")
	return m
}

// RegisterProcess adds the metrics of the Go runtime and of the process.
func (m *Metrics) RegisterProcess() {
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Register adds metrics that are read at each scrape.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// GaugeFunc adds a gauge that is read at each scrape.
func (m *Metrics) GaugeFunc(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Constant adds a gauge of 1 whose labels are the content.
func (m *Metrics) Constant(name, help string, labels map[string]string) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	g.Set(1)
	m.registry.MustRegister(g)
}

// CounterFunc adds a counter that is read at each scrape.
func (m *Metrics) CounterFunc(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// Registry returns the registry, for tests.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

// countersOf makes a counter for each value of its label, so that increase sees the first event.
func (m *Metrics) countersOf(name, help, label string, values ...string) *prometheus.CounterVec {
	c := m.counters(name, help, label)
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// providers are the label values of the server's own providers of models.
var providers = []string{"openai", "anthropic", "ollama", "builtin"}

// Provider returns the label of a provider: its name, or own for one that a workspace has added.
func Provider(name string) string {
	if slices.Contains(providers, name) {
		return name
	}
	return "own"
}

// tools are the label values of the built-in tools.
var tools = []string{"attach_file", "bash", "final_answer", "grep", "http_request", "read", "read_tool_result", "request_secret", "search",
	"wiki_read", "wiki_write", "write"}

// Tool returns the label of a tool: its name, or own for one that a workspace or a caller has added.
func Tool(name string) string {
	if slices.Contains(tools, name) {
		return name
	}
	return "own"
}
