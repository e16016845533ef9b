package main

import "context"

// The modes: ways to do the same work.
const (
	Raw     = "raw"            // the same HTTP, frames, model and client, without a database
	Naive   = "naive"          // one INSERT per delta, a trigger that notifies, streams that query again
	Service = "service"        // the whole service
	Remote  = "service-remote" // turns in one process, streams in another
	Default = "river-default"  // the whole service with River's own fetch settings; turn only

	Bare    = "bare"    // a command as it is; sandbox only, as the next three
	Walled  = "walled"  // a command as the tool bash runs it
	Direct  = "direct"  // a server's answers as they come
	Proxied = "proxied" // a server's answers through a run's proxy
)

// Modes are all of them, in the order of the report.
var Modes = []string{Raw, Naive, Service, Remote, Default, Bare, Walled, Direct, Proxied}

// Metric is something measured. Its name carries the unit.
type Metric string

// The metrics.
const (
	Rate         Metric = "per_second"                       // deltas, events, acknowledgements or turns
	P50          Metric = "p50_ms"                           // emission to arrival of a delta, or the wait of the workload
	P99          Metric = "p99_ms"                           //
	FirstP50     Metric = "first_text_p50_ms"                // request to first text
	FirstP99     Metric = "first_text_p99_ms"                //
	Volume       Metric = "bytes_per_second"                 // of answers
	Delivered    Metric = "delivered"                        // of offered
	CPU          Metric = "cpu_seconds_per_million"          // of deltas: server processes and PostgreSQL
	Database     Metric = "database_cpu_seconds_per_million" // the part of it that is PostgreSQL's
	TurnCPU      Metric = "cpu_ms_per_turn"                  // the same of a turn
	TurnDatabase Metric = "database_cpu_ms_per_turn"         //
	Statements   Metric = "statements_per_turn"              // of SQL, BEGIN and COMMIT among them
	Commits      Metric = "commits_per_turn"                 // transactions of PostgreSQL
	WAL          Metric = "wal_bytes_per_delta"              //
	Rejected     Metric = "answers_503"                      //
	Peak         Metric = "peak_bytes"                       // of the server process, resident
	Memory       Metric = "bytes_per_stream"                 // resident, of the server process
	Lost         Metric = "lost_rows"                        //
	Streams      Metric = "streams"                          // held open
	StartP50     Metric = "start_p50_ms"                     // turn queued → running
	StartP99     Metric = "start_p99_ms"                     //
	Rows         Metric = "rows_per_delta"                   // after merging
)

// Figures are what one run measured.
type Figures map[Metric]float64

// scenario is one line of the plan: the same work in several modes.
type scenario struct {
	Workload string // "append"
	Case     string // "64 producers"
	Modes    []string
	// run does it once. An error is a failed run: something broke, or the
	// integrity check found a hole.
	run    func(ctx context.Context, b *bench, mode string) (Figures, error)
	needs  func(ctx context.Context) error // why it cannot run on this machine; nil: it can anywhere
	ratios []ratio
	// peerWork is the same work as the arguments of a peer's program; nil where peers cannot do it.
	peerWork []string
	streams  int // of that work
}

// none is a target of nothing at all.
const none = 1e-9

// ratio compares two modes of a scenario, or states one figure, beside its target.
type ratio struct {
	What   string // "rate of service to naive"
	Metric Metric
	Of, To string  // modes; To "" states the figure of Of alone
	Least  float64 // target: at least; 0 for none
	Most   float64 // target: at most; 0 for none
	// Unmerged targets hold for one row per delta. If text was merged, the ratio is printed without
	// a verdict, with the rows per delta.
	Unmerged bool
}
