package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of the bench. --json prints it.
type Report struct {
	Conditions Conditions `json:"conditions"`
	Ratios     []Ratio    `json:"ratios"`
	Results    []Result   `json:"results"`
	Failures   []string   `json:"failures"`
}

// Conditions are the conditions that affect absolute figures.
type Conditions struct {
	At       time.Time `json:"at"`
	Host     string    `json:"host"`
	Go       string    `json:"go"`
	Database string    `json:"database"`
	Durable  bool      `json:"durable"`
	Limits   string    `json:"limits"`
	Peers    bool      `json:"peers"` // other servers were requested
	// PeersMissing lists the peers that are not installed.
	PeersMissing []string `json:"peers_missing,omitempty"`
	Fsync        float64  `json:"fsync_ms,omitempty"` // one durable write of 8 kB on the database's disk
	CPUKnown     bool     `json:"cpu_known"`          // false: the system does not report the usage of PostgreSQL
}

// Result is one scenario.
type Result struct {
	scenario scenario

	Workload string       `json:"workload"`
	Case     string       `json:"case"`
	Modes    []ModeResult `json:"modes"`
}

// ModeResult is one scenario in one mode.
type ModeResult struct {
	Mode   string    `json:"mode"`
	Median Figures   `json:"median"`
	Rounds []Figures `json:"rounds"`
	Failed string    `json:"failed,omitempty"`
}

// Ratio is one comparison. Met is absent if it has no target.
type Ratio struct {
	Workload string  `json:"workload"`
	Case     string  `json:"case"`
	What     string  `json:"what"`
	Value    float64 `json:"value"`
	Target   string  `json:"target,omitempty"`
	Met      *bool   `json:"met,omitempty"`

	of bool // a comparison of two modes, not one figure
}

// conclude computes medians, ratios and the list of failures.
func (r *Report) conclude() {
	for i := range r.Results {
		res := &r.Results[i]
		medians := make(map[string]Figures)
		for k := range res.Modes {
			m := &res.Modes[k]
			if m.Failed != "" { // figures of the successful rounds alone would mislead
				r.Failures = append(r.Failures, fmt.Sprintf("%s, %s, %s: %s", res.Workload, res.Case, m.Mode, m.Failed))
				continue
			}
			m.Median = medianOf(m.Rounds)
			medians[m.Mode] = m.Median
		}
		for _, want := range res.scenario.ratios {
			if got, ok := want.of(medians); ok {
				got.Workload, got.Case = res.Workload, res.Case
				r.Ratios = append(r.Ratios, got)
			}
		}
	}
}

func medianOf(rounds []Figures) Figures {
	all := make(map[Metric][]float64)
	for _, f := range rounds {
		for m, v := range f {
			all[m] = append(all[m], v)
		}
	}
	out := make(Figures, len(all))
	for m, values := range all {
		out[m] = median(values)
	}
	return out
}

// of computes a ratio; ok is false if a mode or a figure is missing.
func (want ratio) of(medians map[string]Figures) (got Ratio, ok bool) {
	value, ok := medians[want.Of][want.Metric]
	if !ok {
		return got, false
	}
	got = Ratio{What: want.What, Value: value}
	if want.To != "" {
		base, ok := medians[want.To][want.Metric]
		if !ok || base == 0 {
			return got, false
		}
		got.of, got.Value = true, value/base
	}
	switch {
	case want.Least > 0:
		got.Target, got.Met = "≥ "+formatNumber(want.Least), new(got.Value >= want.Least)
	case want.Most == none:
		got.Target, got.Met = "0", new(got.Value == 0)
	case want.Most > 0:
		got.Target, got.Met = "≤ "+formatNumber(want.Most), new(got.Value <= want.Most)
	}
	if rows := medians[Service][Rows]; want.Unmerged && rows < 0.95 {
		got.What += fmt.Sprintf(", %s rows per delta", formatNumber(rows))
		got.Target, got.Met = got.Target+" without merging", nil
	}
	return got, true
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteTable writes the report as a table: ratios first, since they apply to any machine.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Ratios) > 0 {
		fmt.Fprint(t, "RATIO\t\t\tMEASURED\tTARGET\n")
	}
	for _, x := range r.Ratios {
		value := formatNumber(x.Value)
		if x.of {
			value += " ×"
		}
		target := x.Target
		if x.Met != nil && !*x.Met {
			target += "  missed"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", x.Workload, x.Case, x.What, value, target)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nMEDIAN\t\t\t")
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.title)
	}
	fmt.Fprint(t, "\n")
	for _, res := range r.Results {
		for _, m := range res.Modes {
			fmt.Fprintf(t, "%s\t%s\t%s\t", res.Workload, res.Case, m.Mode)
			if m.Failed != "" {
				fmt.Fprint(t, "FAILED\n")
				continue
			}
			for _, c := range columns {
				fmt.Fprintf(t, "%s\t", c.cell(m.Median))
			}
			fmt.Fprint(t, "\n")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeFoot(w)
}

func (r *Report) writeFoot(w io.Writer) error {
	c := r.Conditions
	var b strings.Builder
	fmt.Fprintf(&b, "\nServers, PostgreSQL and the client of the load share this machine: %s, %s.\n%s.\n", c.Host, c.Go, c.Database)
	if !c.Durable {
		b.WriteString("PostgreSQL is NOT durable: a crash can lose commits, so these figures are not those of a production server.\n")
	}
	if c.Fsync > 0 {
		fmt.Fprintf(&b, "A durable write of 8 kB takes %s ms here.\n", formatNumber(c.Fsync))
	}
	b.WriteString(c.Limits + "\n")
	if len(c.PeersMissing) > 0 {
		fmt.Fprintf(&b, "Not installed, so not compared: %s. make bench-peers installs them.\n", strings.Join(c.PeersMissing, ", "))
	}
	if c.Peers {
		b.WriteString(
			"A server that is memory only loses its streams with its process. It wins the paced median, since it waits for no commit.\n")
	}
	if !c.CPUKnown {
		b.WriteString("PostgreSQL's CPU time cannot be measured here, so the CPU columns are empty.\n")
	}
	if len(r.Failures) == 0 {
		b.WriteString("Every stream got exactly its deltas, in order, once.\n")
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "FAILED  %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
