package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// row is one figure of a run.
type row struct {
	name   string
	value  func(m measured) (float64, bool)
	always bool // also printed for failed runs
}

// rows are all figures. A run has the figures of its workload.
var rows = []row{
	{"failed turns", ofRun(func(r *result) float64 { return float64(len(r.failed)) }), true},
	{"answers 503", ofRun(func(r *result) float64 { return float64(r.refused[503]) }), true},
	{"turns a second", short(func(m measured) float64 { return float64(m.result.turns) / m.result.took.Seconds() }), false},
	{"first text p50, ms", waited(func(r *result) []time.Duration { return r.first }, 0.5), false},
	{"first text p99, ms", waited(func(r *result) []time.Duration { return r.first }, 0.99), false},
	{"done p99, ms", waited(func(r *result) []time.Duration { return r.whole }, 0.99), false},
	{"delta emitted to received p50, ms", waited(func(r *result) []time.Duration { return r.emitted }, 0.5), false},
	{"delta emitted to received p99, ms", waited(func(r *result) []time.Duration { return r.emitted }, 0.99), false},
	{"delta due to received p50, ms", waited(func(r *result) []time.Duration { return r.due }, 0.5), false},
	{"delta due to received p99, ms", waited(func(r *result) []time.Duration { return r.due }, 0.99), false},
	{"deltas a second", long(func(m measured) float64 { return float64(m.result.deltas) / m.result.took.Seconds() }), false},
	{"frames per delta", long(func(m measured) float64 { return float64(m.result.frames) / float64(m.result.deltas) }), false},
	{"CPU per turn, ms", short(func(m measured) float64 { return (m.server + m.pg) * 1e3 / float64(m.result.turns) }), false},
	{"  of it PostgreSQL", short(func(m measured) float64 { return m.pg * 1e3 / float64(m.result.turns) }), false},
	{"CPU per million deltas, s", long(func(m measured) float64 { return (m.server + m.pg) * 1e6 / float64(m.result.deltas) }), false},
	{"  of it PostgreSQL", long(func(m measured) float64 { return m.pg * 1e6 / float64(m.result.deltas) }), false},
	{"CPU a minute, s", resting(func(m measured) float64 { return (m.server + m.pg) / m.result.took.Minutes() }), false},
	{"commits a second", resting(func(m measured) float64 { return m.commits / m.result.took.Seconds() }), false},
	{"statements per turn", counted(short(func(m measured) float64 { return m.statements / float64(m.counted.turns) })), false},
	{"commits per turn", counted(short(func(m measured) float64 { return m.commits / float64(m.counted.turns) })), false},
	{"statements per 1,000 deltas", counted(long(func(m measured) float64 { return m.statements * 1e3 / float64(m.counted.deltas) })), false},
	{"commits per 1,000 deltas", counted(long(func(m measured) float64 { return m.commits * 1e3 / float64(m.counted.deltas) })), false},
	{"WAL per turn, bytes", short(func(m measured) float64 { return float64(m.wal) / float64(m.result.turns) }), false},
	{"WAL per delta, bytes", long(func(m measured) float64 { return float64(m.wal) / float64(m.result.deltas) }), false},
	{"server memory, MiB", func(m measured) (float64, bool) { return float64(m.memory) / (1 << 20), true }, false},
}

// short, long and resting select the runs of a row: short turns, turns with deltas, no load.
func short(of func(measured) float64) func(measured) (float64, bool) {
	return func(m measured) (float64, bool) { return of(m), m.result.turns > 0 && m.result.deltas == 0 }
}

func long(of func(measured) float64) func(measured) (float64, bool) {
	return func(m measured) (float64, bool) { return of(m), m.result.deltas > 0 }
}

func resting(of func(measured) float64) func(measured) (float64, bool) {
	return func(m measured) (float64, bool) { return of(m), m.result.turns == 0 && len(m.result.failed) == 0 }
}

func ofRun(of func(*result) float64) func(measured) (float64, bool) {
	return func(m measured) (float64, bool) { return of(m.result), m.result.turns+len(m.result.failed) > 0 }
}

func counted(of func(measured) (float64, bool)) func(measured) (float64, bool) {
	return func(m measured) (float64, bool) {
		v, ok := of(m)
		return v, ok && m.counted != units{}
	}
}

func waited(of func(*result) []time.Duration, q float64) func(measured) (float64, bool) {
	return func(m measured) (float64, bool) {
		d := of(m.result)
		if len(d) == 0 {
			return 0, false
		}
		return quantile(d, q), true
	}
}

// median returns the middle value, the lower one of two.
func median(all []float64) float64 {
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

func number(v float64) string {
	switch {
	case v == float64(int64(v)) || v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
