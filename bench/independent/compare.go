package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// comparison alternates the same workloads between several binaries.
type comparison struct {
	rounds int
	hosts  []*host
	loads  []workload
	runs   map[string][][]measured // by workload; the rounds of each host
}

// suite lists the workloads of a comparison. last is the duration of a load.
func suite(last time.Duration) []string {
	s := last.String()
	return []string{
		"turns -clients 64 -for " + s,
		"burst -messages 100",
		"burst -messages 1000",
		"offered -rate 200 -for " + s,
		"paced -streams 100 -rate 20 -for " + s,
		"paced -streams 1000 -rate 20 -ramp 4s -for " + s,
		"paced -streams 1000 -rate 50 -ramp 4s -for " + s,
		"flat -streams 100 -deltas 3000",
		"idle -for 20s",
		many + " 25s -streams 5000 -rate 10 -for 20s",
		many + " 50s -streams 10000 -rate 5 -for 20s",
	}
}

// many is the prefix of the workloads that take too long for every comparison.
const many = "paced -ramp"

func compare(args []string) error {
	f := flag.NewFlagSet("compare", flag.ExitOnError)
	rounds := f.Int("rounds", 3, "how often each workload runs on each binary")
	last := f.Duration("for", 10*time.Second, "how long a load lasts")
	only := f.String("only", "", "workloads to run, such as turns,burst; \"paced -streams 1000\" names some of the paced ones")
	all := f.Bool("all", false, "also 5,000 and 10,000 streams")
	skip := f.Bool("no-statements", false, "do not count the statements and commits of turns and paced, which takes 45 seconds for each")
	f.Parse(args)
	if f.NArg() == 0 {
		return fmt.Errorf("name one or more binaries, such as old/parley new/parley")
	}
	c := comparison{rounds: *rounds, runs: map[string][][]measured{}}
	for _, line := range suite(*last) {
		if chosen(line, *only, *all) {
			w, err := newWorkload(strings.Fields(line))
			if err != nil {
				return err
			}
			c.loads = append(c.loads, w)
		}
	}
	defer func() {
		for _, h := range c.hosts {
			h.remove()
		}
	}()
	for _, binary := range f.Args() {
		h, err := newHost(binary)
		if err != nil {
			return err
		}
		c.hosts = append(c.hosts, h)
	}
	failed := c.run(!*skip)
	c.print()
	return failed
}

func chosen(line, only string, all bool) bool {
	if strings.HasPrefix(line, many) && !all {
		return false
	}
	if only == "" {
		return true
	}
	for name := range strings.SplitSeq(only, ",") {
		if strings.HasPrefix(line+" ", name+" ") {
			return true
		}
	}
	return false
}

// run runs all rounds. A failed run has no figures and does not end the others.
func (c *comparison) run(statements bool) (failed error) {
	for round := range c.rounds {
		for _, w := range c.loads {
			if c.runs[w.name()] == nil {
				c.runs[w.name()] = make([][]measured, len(c.hosts))
			}
			for i := range c.hosts {
				i = (i + round) % len(c.hosts)
				m, err := c.hosts[i].measure(w, os.Stderr)
				if err == nil {
					c.runs[w.name()][i] = append(c.runs[w.name()][i], m)
					err = m.result.err()
				}
				failed = c.report(failed, w, i, fmt.Sprintf("round %d of %d", round+1, c.rounds), err)
			}
		}
	}
	if statements {
		failed = c.count(failed)
	}
	return failed
}

// count adds statements and commits to the first run of each workload.
func (c *comparison) count(failed error) error {
	for i, h := range c.hosts {
		if err := h.loadStatements(); err != nil {
			return c.report(failed, workload{}, i, "counting", err)
		}
		for _, w := range c.loads {
			runs := c.runs[w.name()][i]
			if len(runs) == 0 || !w.count {
				continue
			}
			failed = c.report(failed, w, i, "counting", h.count(w, &runs[0]))
		}
	}
	return failed
}

func (c *comparison) report(failed error, w workload, i int, what string, err error) error {
	state := "ok"
	if err != nil {
		state = "FAILED: " + err.Error()
		failed = fmt.Errorf("runs failed")
	}
	fmt.Fprintf(os.Stderr, "%s  %s  %s  %s: %s\n", time.Now().Format(time.TimeOnly), w.name(), c.hosts[i].binary, what, state)
	return failed
}

func (c *comparison) print() {
	for i, h := range c.hosts {
		fmt.Printf("%c: %s\n   %s; max_running %d\n", 'A'+i, h.binary, h.settings, h.running)
	}
	fmt.Printf(`Each figure is the median of %d rounds, run in turns. Clients, server and PostgreSQL share this machine.
The key's own limits were raised with: parley workspace update %s
Workloads with more than %d turns at once: parley workspace update --max-running of that number, and 4/3 of it,
at least 100, for PARLEY_WORKERS and PARLEY_MODEL_CALLS. Everything else has its default.
Twenty turns before each workload open connections and do not count; every later one counts from its request.
`, c.rounds, strings.Join(room, " "), busyByDefault)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, w := range c.loads {
		fmt.Fprintf(t, "\n%s\t", w.name())
		for i, h := range c.hosts {
			fmt.Fprintf(t, "%c %s\t", 'A'+i, filepath.Base(h.binary))
		}
		fmt.Fprint(t, "\n")
		for _, row := range rows {
			c.printRow(t, w, row)
		}
	}
	t.Flush()
}

// printRow prints the medians of one figure. A host whose runs failed has a dash: figures of its
// successful turns alone are meaningless.
func (c *comparison) printRow(t *tabwriter.Writer, w workload, row row) {
	var cells []string
	found := false
	for _, runs := range c.runs[w.name()] {
		var values []float64
		broken := false
		for _, m := range runs {
			broken = broken || len(m.result.failed) > 0
			if v, ok := row.value(m); ok {
				values = append(values, v)
			}
		}
		cell := "-"
		if len(values) > 0 && (!broken || row.always) {
			cell, found = number(median(values)), true
		}
		cells = append(cells, cell)
	}
	if found {
		fmt.Fprintf(t, "%s\t%s\t\n", row.name, strings.Join(cells, "\t"))
	}
}
