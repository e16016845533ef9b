package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Options select the workloads to measure.
type Options struct {
	Workloads []string // a subset of the plan; empty for all
	Modes     []string // empty for all
	Rounds    int      // 0: three, or one with Quick
	Quick     bool
	Full      bool
	Database  string // DSN; "" starts a private server
	Profiles  string // directory for processor profiles of the servers; "" for none
	Peers     string // directory with drivers of other servers; "" for none

	Progress func(line string) // may be nil

	tiny bool // for the tests
}

// size returns how much of the plan to run. A named workload runs all of its cases.
func (o *Options) size() size {
	switch {
	case o.tiny:
		return tiny
	case o.Quick:
		return quick
	case o.Full || len(o.Workloads) > 0:
		return full
	}
	return normal
}

// Run measures and reports. Failures of workloads are in the report as well; err is only a failure
// that kept the bench from running.
func Run(ctx context.Context, opt Options) (*Report, error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	list, err := opt.scenarios()
	if err != nil {
		return nil, err
	}
	var peers []peer
	var missing []string
	if opt.Peers != "" {
		if peers, missing, err = loadPeers(opt.Peers); err != nil {
			return nil, err
		}
	}
	c, err := openCluster(ctx, opt.Database, opt.Progress)
	if err != nil {
		return nil, err
	}
	b := &bench{cluster: c, profiles: opt.Profiles}
	r := &Report{Conditions: c.conditions()}
	r.Conditions.Peers, r.Conditions.PeersMissing = opt.Peers != "", missing
	for _, s := range list {
		s = s.withPeers(peers)
		if s.needs != nil && len(opt.Workloads) == 0 {
			if err := s.needs(ctx); err != nil {
				opt.Progress(fmt.Sprintf("%s, %s: left out. %v", s.Workload, s.Case, err))
				continue
			}
		}
		r.Results = append(r.Results, b.rounds(ctx, s, opt))
		if ctx.Err() != nil {
			break
		}
	}
	r.conclude()
	if err := c.close(context.WithoutCancel(ctx)); err != nil {
		return r, err
	}
	return r, context.Cause(ctx)
}

// scenarios selects from the plan.
func (o *Options) scenarios() ([]scenario, error) {
	size := o.size()
	if o.Rounds <= 0 {
		o.Rounds = 3
		if size <= quick {
			o.Rounds = 1
		}
	}
	var list []scenario
	var workloads []string
	for _, s := range planOf(size) {
		if !slices.Contains(workloads, s.Workload) {
			workloads = append(workloads, s.Workload)
		}
		if len(o.Workloads) > 0 && !slices.Contains(o.Workloads, s.Workload) {
			continue
		}
		if len(o.Modes) > 0 {
			s.Modes = slices.DeleteFunc(slices.Clone(s.Modes), func(m string) bool { return !slices.Contains(o.Modes, m) })
		}
		if len(s.Modes) > 0 {
			list = append(list, s)
		}
	}
	for _, w := range o.Workloads {
		if !slices.Contains(workloads, w) {
			return nil, fmt.Errorf("unknown workload %q: choose from %q; %w", w, workloads, errUsage)
		}
	}
	for _, m := range o.Modes {
		if !slices.Contains(Modes, m) {
			return nil, fmt.Errorf("unknown mode %q: choose from %q; %w", m, Modes, errUsage)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the workloads %q have none of the modes %q; %w", o.Workloads, o.Modes, errUsage)
	}
	return list, nil
}

// rounds runs the modes of a scenario in turns. Each round begins with another one, so that other
// work on the machine affects all of them alike.
func (b *bench) rounds(ctx context.Context, s scenario, opt Options) Result {
	r := Result{scenario: s, Workload: s.Workload, Case: s.Case, Modes: make([]ModeResult, len(s.Modes))}
	for i, m := range s.Modes {
		r.Modes[i].Mode = m
	}
	for round := range opt.Rounds {
		for i := range s.Modes {
			m := &r.Modes[(i+round)%len(s.Modes)]
			if m.Failed != "" {
				continue
			}
			began := time.Now()
			f, err := s.run(ctx, b, m.Mode)
			if ctx.Err() != nil {
				return r
			}
			what := f.short()
			if err != nil {
				m.Failed = err.Error()
				what = "FAILED: " + m.Failed
			} else {
				m.Rounds = append(m.Rounds, f)
			}
			opt.Progress(fmt.Sprintf("%s, %s, %s, round %d of %d, %.1f s: %s", s.Workload, s.Case, m.Mode, round+1, opt.Rounds,
				time.Since(began).Seconds(), what))
		}
	}
	return r
}

// limitsText states which limits differ from their defaults.
var limitsText = fmt.Sprintf(`One key sends the whole load, so its limits are those of
  parley workspace update --messages-per-minute %[1]d --calls-per-minute %[1]d --open-streams %[1]d
short, burst, offered, turn and tool have every other limit at its default; up to %[2]d turns of a workspace run at once.
Where more streams run at once, --max-running is their number, and PARLEY_WORKERS and PARLEY_MODEL_CALLS (default %[3]d)
are 4/3 of it, since a workspace gets three of four places.
Percentiles cover every turn and every delta, those of the ramp among them. "first" counts from the request.`,
	keyLimits, defaultRunning, defaultWorkers)

// conditions returns the conditions that affect the figures.
func (c *cluster) conditions() Conditions {
	host := fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	cond := Conditions{At: time.Now().UTC().Truncate(time.Second), Host: host, Go: runtime.Version(), Database: c.settings,
		Durable: c.durable, Limits: limitsText, CPUKnown: postgresUsage(c.postmaster).Known}
	if c.fsync > 0 {
		cond.Fsync = milliseconds(c.fsync)
	}
	return cond
}
