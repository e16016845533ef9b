package main

import "time"

// size is the size of a plan.
type size int

const (
	tiny   size = iota // only integrity, for the tests
	quick              // a first impression in less than a minute
	normal             // the size of make bench, about ten minutes
	full               // everything, about forty minutes
)

// planOf lists the scenarios of a size.
func planOf(s size) []scenario {
	switch s {
	case tiny:
		return tinyPlan()
	case quick:
		return quickPlan()
	}
	var list []scenario
	for _, n := range []int{1, 4, 16, 64, 256} {
		if s == full || n == 16 || n == 64 {
			list = append(list, appendScenario(n, 2*time.Second))
		}
	}
	list = append(list, gapScenario(gapEach),
		flatScenario(100, 3000, 100, flatTarget),
		shortScenario(64, 5*time.Second, shortTargets...),
		burstScenario(100), burstScenario(1000, burstTargets...),
		offeredScenario(200, 5*time.Second, offeredTarget),
		pacedScenario(100, 20, 3*time.Second, []string{Naive, Service, Remote}, hundred...),
		pacedScenario(1000, 20, 3*time.Second, []string{Service, Remote}, thousand...),
		pacedScenario(1000, 50, 3*time.Second, []string{Raw, Service}, loaded...),
	)
	if s == full {
		list = append(list,
			pacedScenario(5000, 10, 5*time.Second, []string{Raw, Service}, loaded[2:]...),
			pacedScenario(10_000, 5, 10*time.Second, []string{Service}, crowded...))
	}
	list = append(list,
		replayScenario(20_000, 50, false, replayTarget),
		replayScenario(20_000, 50, true, replayTarget),
		startScenario(30, 0, append(startTargets, alone)...),
		startScenario(150, 50, startTargets...),
		toolScenario(100, toolTarget),
		idleScenario(1000, time.Minute, load{streams: 100, deltas: 120, rate: 20}, idleTarget),
	)
	if s == full {
		list = append(list, callScenario(100), proxyScenario(2000, 2<<10, 8), proxyScenario(60, 4<<20, 4))
		list = append(list, idleScenario(10_000, time.Minute, load{streams: 100, deltas: 200, rate: 20}, idleTarget,
			ratio{What: "streams held beside the load", Metric: Streams, Of: Service, Least: 10_000}))
	}
	return list
}

func quickPlan() []scenario {
	return []scenario{
		appendScenario(64, time.Second),
		gapScenario(gapEach),
		flatScenario(100, 1000, 30, flatTarget),
		shortScenario(64, 2*time.Second, shortTargets...),
		burstScenario(100),
		offeredScenario(200, 2*time.Second, offeredTarget),
		pacedScenario(100, 20, 2*time.Second, []string{Naive, Service, Remote}, hundred...),
		replayScenario(20_000, 10, false, replayTarget),
		startScenario(50, 50, startTargets...),
		toolScenario(50, toolTarget),
		idleScenario(1000, 5*time.Second, load{streams: 20, deltas: 60, rate: 20}),
	}
}

func tinyPlan() []scenario {
	return []scenario{
		appendScenario(4, 200*time.Millisecond),
		gapScenario(100),
		flatScenario(20, 200, 10),
		shortScenario(4, 200*time.Millisecond),
		burstScenario(20),
		offeredScenario(50, 200*time.Millisecond),
		pacedScenario(20, 20, time.Second, []string{Raw, Naive, Service, Remote}),
		replayScenario(3000, 3, false),
		replayScenario(3000, 3, true),
		startScenario(5, 20),
		toolScenario(3),
		idleScenario(20, 0, load{streams: 5, deltas: 40, rate: 20}),
		callScenario(3), proxyScenario(20, 200<<10, 3),
	}
}

// The targets. The report prints them beside the figures; they decide nothing.
var (
	flatTarget   = ratio{What: "deltas: service to naive", Metric: Rate, Of: Service, To: Naive, Least: 100}
	shortTargets = []ratio{
		{What: "turns a second", Metric: Rate, Of: Service, Least: 600},
		{What: "CPU per turn, ms", Metric: TurnCPU, Of: Service, Most: 2.8},
		{What: "statements per turn", Metric: Statements, Of: Service, Most: 10},
		{What: "commits per turn", Metric: Commits, Of: Service, Most: 4},
	}
	burstTargets = []ratio{
		{What: "request → first text, p50, ms", Metric: FirstP50, Of: Service, Most: 1000},
		{What: "request → first text, p99, ms", Metric: FirstP99, Of: Service, Most: 2000},
		{What: "answers 503", Metric: Rejected, Of: Service, Most: none},
	}
	offeredTarget = ratio{What: "request → first text, p99, ms", Metric: FirstP99, Of: Service, Most: 60}
	hundred       = []ratio{
		{What: "p50 emitted → received, ms", Metric: P50, Of: Service, Most: 6},
		{What: "p99 emitted → received, ms", Metric: P99, Of: Service, Most: 12},
		{What: "CPU per million deltas, s", Metric: CPU, Of: Service, Most: 160},
		{What: "p99: service to naive", Metric: P99, Of: Service, To: Naive},
		{What: "p50: other node to writing node", Metric: P50, Of: Remote, To: Service, Most: 2},
	}
	thousand = []ratio{
		{What: "p50 emitted → received, ms", Metric: P50, Of: Service, Most: 8},
		{What: "p99 emitted → received, ms", Metric: P99, Of: Service, Most: 25},
		{What: "p50: other node to writing node", Metric: P50, Of: Remote, To: Service, Most: 2},
	}
	loaded = []ratio{
		{What: "p50 emitted → received, ms", Metric: P50, Of: Service, Most: 25},
		{What: "p99 emitted → received, ms", Metric: P99, Of: Service, Most: 100},
		{What: "arrived by the time the last delta was due", Metric: Delivered, Of: Service},
		{What: "CPU per offered delta: raw to service", Metric: CPU, Of: Raw, To: Service, Least: 0.85, Unmerged: true},
	}
	crowded = []ratio{
		{What: "p99 emitted → received, ms", Metric: P99, Of: Service, Most: 250},
		{What: "memory of the server at its peak, bytes", Metric: Peak, Of: Service, Most: 2 << 30},
	}
	replayTarget = ratio{What: "events a second", Metric: Rate, Of: Service, Least: 400_000}
	startTargets = []ratio{
		{What: "queued → running, p99, ms", Metric: StartP99, Of: Service, Most: 15},
		{What: "request → first text, p99: ours to River's defaults", Metric: FirstP99, Of: Service, To: Default},
	}
	toolTarget = ratio{What: "a turn with a tool server's call over one with a built-in tool's, p50, ms", Metric: Overhead,
		Of: Service, Most: 5}
	// A queue that is never empty hides River's poll interval; a single turn is affected by it.
	alone      = ratio{What: "queued → running, p99: ours to River's defaults", Metric: StartP99, Of: Service, To: Default, Most: 1. / 50}
	idleTarget = ratio{What: "bytes of an idle stream", Metric: Memory, Of: Service, Most: 32 << 10}
)
