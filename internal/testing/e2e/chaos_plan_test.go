package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The kinds of faults. chaosRun.begin describes each where it injects it.
const (
	faultCut       = "cut"
	faultRefuse    = "refuse"
	faultMidBatch  = "mid-batch"
	faultHalfOpen  = "half-open"
	faultFreeze    = "freeze"
	faultDelay     = "delay"
	faultStall     = "stall"
	faultKill      = "kill"
	faultPause     = "pause"
	faultTerm      = "term"
	faultTerminate = "terminate"
	faultBackend   = "backend"
	faultDatabase  = "database"
	faultFailover  = "failover"
	faultDisk      = "disk"
	faultClock     = "clock"
	faultStop      = "stop"
	faultDeploy    = "deploy"
	faultTool      = "tool"
)

// faultPlace groups the kinds of which only one can be active in one place at a time.
var faultPlace = map[string]string{
	faultCut: "cut", faultRefuse: "refuse", faultMidBatch: "hook", faultStall: "hook", faultHalfOpen: "link", faultFreeze: "link",
	faultDelay: "delay", faultKill: "process", faultPause: "process", faultTerm: "process",
	faultTerminate: "sessions", faultBackend: "backend", faultDatabase: "database", faultFailover: "database",
	faultDisk: "database", faultStop: "database", faultClock: "clock", faultDeploy: "process", faultTool: "tool",
}

// longKinds are the kinds that short plans leave out: they take seconds, or need root, libfaketime or
// the program of an older release, and do nothing without.
var longKinds = []string{faultFailover, faultDisk, faultClock, faultStop, faultDeploy, faultTool}

// scheduledFault is one fault of a plan.
type scheduledFault struct {
	kind    string
	replica int           // 0 or 1; ignored by faults of the database
	at      time.Duration // since the start of the clients
	lasts   time.Duration
	n       int // which byte, connection or backend
}

func (f scheduledFault) String() string {
	return fmt.Sprintf("%s replica=%d n=%d lasts=%v", f.kind, f.replica, f.n, f.lasts)
}

// scenario is the part of a run that follows from its crash point: other messages, and other checks.
// Each member may be nil.
type scenario struct {
	draw    func(*chaosRun, *rand.Rand, string) *chaosMessage // replaces newChaosMessage
	prepare func(*chaosRun)                                   // before the replicas start
	beside  func(context.Context, *chaosRun)                  // while the clients run
	settle  func(*chaosRun)                                   // before the checks, after the turns have ended
}

// chaosPlan is everything that follows from a seed alone: which faults happen when, and how many
// clients send how much. How processes and connections interleave does not follow from it.
type chaosPlan struct {
	seed    int64
	short   bool // for the normal test suite: few messages, and a provider that fails once
	kinds   []string
	faults  []scheduledFault
	clients int
	turns   int           // minimum number of messages of each client
	crash   string        // the crash point of replica 0, as FAULT has it; "": none
	both    bool          // the crash point is also one of replica 1
	env     []string      // further environment of the replicas
	goesOn  time.Duration // clients send messages for at least this long
	think   time.Duration // mean pause of a client between two messages, 0: 100 ms
	scenario
}

// newChaosPlan draws a plan. A short one is for the normal test suite.
func newChaosPlan(seed int64, short bool) chaosPlan {
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	p := chaosPlan{seed: seed, clients: 4 + rng.IntN(4), turns: 5 + rng.IntN(4)}
	window, longest := 8*time.Second, 8*time.Second
	if short {
		p.short, p.clients, p.turns = true, 3, 3
		window, longest = 3*time.Second, 2*time.Second
	}
	all := slices.Sorted(func(yield func(string) bool) {
		for kind := range faultPlace {
			if !(short && slices.Contains(longKinds, kind)) && !yield(kind) {
				return
			}
		}
	})
	for _, kind := range all { // a random subset, so that one kind does not hide the effects of another
		if rng.Float64() < 0.35 {
			p.kinds = append(p.kinds, kind)
		}
	}
	if p.kinds == nil {
		p.kinds = []string{all[rng.IntN(len(all))]}
	}
	mean := 200*time.Millisecond + time.Duration(rng.Int64N(int64(2*time.Second)))
	busy := map[string]time.Duration{}
	for at := time.Duration(0); ; {
		at += min(time.Duration(rng.ExpFloat64()*float64(mean)), 3*time.Second)
		if at > window {
			break
		}
		f := scheduledFault{kind: p.kinds[rng.IntN(len(p.kinds))], replica: rng.IntN(2), at: at, n: rng.IntN(4000)}
		f.lasts = 100*time.Millisecond + time.Duration(rng.Int64N(int64(1500*time.Millisecond)))
		if rng.IntN(4) == 0 {
			f.lasts += time.Duration(rng.Int64N(int64(longest)))
		}
		place := faultPlace[f.kind]
		if !slices.Contains([]string{faultTerminate, faultBackend, faultDatabase, faultFailover, faultDisk, faultStop, faultClock,
			faultTool}, f.kind) {
			place += fmt.Sprint(f.replica)
		}
		if busy[place] > at {
			continue
		}
		busy[place] = at + f.lasts
		p.faults = append(p.faults, f)
	}
	return p
}

// newFailoverPlan draws a plan whose only fault is a failover while all clients are at work.
func newFailoverPlan(seed int64) chaosPlan {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	f := scheduledFault{kind: faultFailover, lasts: 5 * time.Second, n: int(seed)} // every other one is silent
	f.at = 500*time.Millisecond + time.Duration(rng.Int64N(int64(2500*time.Millisecond)))
	return chaosPlan{seed: seed, kinds: []string{faultFailover}, faults: []scheduledFault{f}, clients: 6, turns: 4}
}

func (p chaosPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d clients, %d messages each, faults %s\n", p.seed, p.clients, p.turns, strings.Join(p.kinds, ", "))
	for _, s := range p.steps() {
		if s.begin {
			fmt.Fprintf(&b, "  %6v %v\n", s.at.Round(time.Millisecond), s.fault)
		}
	}
	return b.String()
}

// planStep is the start or the end of a fault.
type planStep struct {
	at    time.Duration
	begin bool
	fault scheduledFault
}

// steps returns the starts and ends of all faults in the order of time.
func (p chaosPlan) steps() []planStep {
	var steps []planStep
	for _, f := range p.faults {
		steps = append(steps, planStep{f.at, true, f}, planStep{f.at + f.lasts, false, f})
	}
	slices.SortStableFunc(steps, func(a, b planStep) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// TestChaosPlans checks that a plan follows from its seed, and that the short runs together have
// every kind of fault.
func TestChaosPlans(t *testing.T) {
	t.Parallel()
	missing := maps.Clone(faultPlace)
	for _, kind := range longKinds {
		delete(missing, kind)
	}
	for _, seed := range shortSeeds {
		p := newChaosPlan(seed, true)
		if again := newChaosPlan(seed, true); again.String() != p.String() {
			t.Errorf("seed %d has two plans:\n%v%v", seed, p, again)
		}
		for _, f := range p.faults {
			delete(missing, f.kind)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no short run has %v", slices.Collect(maps.Keys(missing)))
	}
}
