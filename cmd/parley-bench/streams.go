package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/model/builtin"
)

const (
	deltaSize = 32  // bytes of a delta, its stamp included: a few words
	cutEvery  = 10  // one of so many streams loses its connection and resumes
	arrivals  = 250 // streams that begin per second, if they do not all begin at once
)

// load is many streams at once. The figures include the ramp, the starts of the turns and the last
// frame.
type load struct {
	streams int
	deltas  int
	rate    float64 // deltas per second of each; 0: as fast as possible
}

// pacedScenario writes deltas at a steady rate, as models do. All streams run at the same time for
// the span.
func pacedScenario(streams int, rate float64, span time.Duration, modes []string, ratios ...ratio) scenario {
	l := load{streams: streams, rate: rate}
	l.deltas = int(rate * (l.ramp() + span).Seconds())
	s := scenario{
		Workload: "paced", Case: fmt.Sprintf("%d streams × %v/s", streams, rate), Modes: modes, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) { return l.run(ctx, b, mode) },
	}
	if streams <= 1000 && rate <= 20 {
		s.streams = streams
		s.peerWork = []string{"paced", fmt.Sprint(streams), fmt.Sprint(rate), fmt.Sprint(max(1, int(span.Seconds())))}
	}
	return s
}

// flatScenario starts everything at once. The naive design gets fewer deltas, since it would need
// minutes; the compared values are rates.
func flatScenario(streams, deltas, naive int, ratios ...ratio) scenario {
	return scenario{
		Workload: "flat", Case: fmt.Sprintf("%d streams × %d deltas", streams, deltas), Modes: []string{Raw, Naive, Service}, ratios: ratios,
		peerWork: []string{"flat", fmt.Sprint(streams), fmt.Sprint(deltas)},
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			l := load{streams: streams, deltas: deltas}
			if mode == Naive {
				l.deltas = naive
			}
			return l.run(ctx, b, mode)
		},
	}
}

// ramp returns the time until the last stream begins.
func (l load) ramp() time.Duration {
	if l.rate == 0 {
		return 0
	}
	return time.Duration(l.streams) * time.Second / arrivals
}

func (l load) run(ctx context.Context, b *bench, mode string) (f Figures, err error) {
	w, err := b.open(ctx, mode, l.streams)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return l.on(ctx, w)
}

// on runs the load against existing servers.
func (l load) on(ctx context.Context, w *world) (Figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	command := builtin.Script("").Bench(l.deltas, deltaSize, l.rate).String()
	readers := make([]*reader, l.streams)
	for i := range readers {
		readers[i] = &reader{client: w.client, command: command, deltas: l.deltas}
		if i%cutEvery == 0 && w.mode != Raw { // the raw server stores nothing to resume from
			readers[i].cut = l.deltas / 3
		}
	}
	before, err := w.meter(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(readers))
	for i, r := range readers {
		wg.Go(func() {
			sleep(ctx, l.ramp()*time.Duration(i)/time.Duration(l.streams))
			if errs[i] = r.run(ctx); errs[i] != nil {
				cancel(fmt.Errorf("stream %d of %d: %w", i, l.streams, errs[i]))
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	after, err := w.meter(ctx)
	if err != nil {
		return nil, err
	}
	f := l.figures(readers)
	w.perDelta(f, before, after, l.streams*l.deltas)
	return f, nil
}

// figures cover every delta, from the first request to the last arrival.
func (l load) figures(readers []*reader) Figures {
	var waits, firsts []time.Duration
	frames, punctual := 0, 0
	began, ended := readers[0].began, time.Time{}
	due := time.Time{} // when the last delta is due, if the turns start at once
	for _, r := range readers {
		if r.began.Before(began) {
			began = r.began
		}
		if l.rate > 0 {
			due = laterOf(due, r.began.Add(time.Duration(float64(l.deltas)/l.rate*1e9)))
		}
	}
	for _, r := range readers {
		frames += r.frames
		firsts = append(firsts, r.waited)
		for _, s := range r.seen {
			arrived := time.Unix(0, s.emitted+int64(s.waited))
			waits = append(waits, s.waited)
			ended = laterOf(ended, arrived)
			if !arrived.After(due) {
				punctual++
			}
		}
	}
	f := Figures{
		Rate:     float64(len(waits)) / ended.Sub(began).Seconds(),
		Rows:     float64(frames) / float64(len(waits)),
		FirstP50: milliseconds(percentile(firsts, 50)), FirstP99: milliseconds(percentile(firsts, 99)),
	}
	if l.rate > 0 {
		f[P50], f[P99] = milliseconds(percentile(waits, 50)), milliseconds(percentile(waits, 99))
		f[Delivered] = float64(punctual) / float64(len(waits))
	}
	return f
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
