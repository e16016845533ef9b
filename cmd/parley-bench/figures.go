package main

import "context"

// The modes are ways to do the same work.
const (
	Raw     = "raw"            // the same HTTP, frames, model and client, without a database
	Naive   = "naive"          // one INSERT per delta, a trigger that notifies, streams that query again
	Service = "service"        // the whole service
	Remote  = "service-remote" // turns in one process, streams in another
	Default = "river-default"  // the whole service with River's own fetch settings; turn only

	Bare    = "bare"    // a command without a sandbox; sandbox only, like the next three
	Walled  = "walled"  // a command as the tool bash runs it
	Direct  = "direct"  // a server's responses, direct
	Proxied = "proxied" // a server's responses through a run's proxy
)

// Modes lists the modes in the order of the report.
var Modes = []string{Raw, Naive, Service, Remote, Default, Bare, Walled, Direct, Proxied}

// Metric is a measured quantity. Its name contains the unit.
type Metric string

// The metrics.
const (
	Rate         Metric = "per_second"                       // deltas, events, acknowledgements or turns
	P50          Metric = "p50_ms"                           // emission to arrival of a delta, or the wait of the workload
	P99          Metric = "p99_ms"                           //
	Overhead     Metric = "overhead_p50_ms"                  // a tool server's call over a built-in one, at the median
	FirstP50     Metric = "first_text_p50_ms"                // request to first text
	FirstP99     Metric = "first_text_p99_ms"                //
	Volume       Metric = "bytes_per_second"                 // of answers
	Delivered    Metric = "delivered"                        // share of the offered
	CPU          Metric = "cpu_seconds_per_million"          // per million deltas: server processes and PostgreSQL
	Database     Metric = "database_cpu_seconds_per_million" // PostgreSQL's part of it
	TurnCPU      Metric = "cpu_ms_per_turn"                  // the same per turn
	TurnDatabase Metric = "database_cpu_ms_per_turn"         //
	Statements   Metric = "statements_per_turn"              // SQL statements, including BEGIN and COMMIT
	Commits      Metric = "commits_per_turn"                 // transactions of PostgreSQL
	WAL          Metric = "wal_bytes_per_delta"              //
	Rejected     Metric = "answers_503"                      //
	Peak         Metric = "peak_bytes"                       // of the server process, in RAM
	Memory       Metric = "bytes_per_stream"                 // of the server process, in RAM
	Lost         Metric = "lost_rows"                        //
	Streams      Metric = "streams"                          // open streams
	StartP50     Metric = "start_p50_ms"                     // turn queued → running
	StartP99     Metric = "start_p99_ms"                     //
	Rows         Metric = "rows_per_delta"                   // after merging
)

// Figures are the measurements of one run.
type Figures map[Metric]float64

// scenario is one line of the plan: the same work in several modes.
type scenario struct {
	Workload string // "append"
	Case     string // "64 producers"
	Modes    []string
	// run runs the scenario once. An error means a failed run: a part failed, or the integrity
	// check found a hole.
	run    func(ctx context.Context, b *bench, mode string) (Figures, error)
	needs  func(ctx context.Context) error // why it cannot run on this machine; nil: it can run anywhere
	ratios []ratio
	// peerWork is the same work as the arguments of a peer's program; nil if peers cannot run it.
	peerWork []string
	streams  int // streams of that work
}

// none is a target of zero.
const none = 1e-9

// ratio compares two modes of a scenario, or states one figure, with its target.
type ratio struct {
	What   string // "rate of service to naive"
	Metric Metric
	Of, To string  // modes; To "" states only the figure of Of
	Least  float64 // target: at least; 0 for none
	Most   float64 // target: at most; 0 for none
	// Unmerged targets hold for one row per delta. If text was merged, the ratio is printed without
	// a verdict, with the rows per delta.
	Unmerged bool
}
