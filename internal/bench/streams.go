package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/model/guide"
)

const (
	deltaSize = 32  // bytes of a delta, its stamp included: a few words
	cutEvery  = 10  // one of so many streams loses its connection and resumes
	arrivals  = 250 // streams that begin in a second, where they do not all begin at once
	crowd     = 100 // the same where the streams are so many that most run already meanwhile
	settle    = 500 * time.Millisecond
)

// load is many streams at once.
type load struct {
	streams int
	deltas  int
	rate    float64       // deltas a second of each; 0 is as fast as it goes
	window  time.Duration // what is measured once all streams run; 0 is everything
}

// paced asks for deltas at a steady rate, as models make them.
func paced(streams int, rate float64, window time.Duration, modes []string, ratios ...ratio) scenario {
	l := load{streams: streams, rate: rate, window: window}
	l.deltas = int(rate * (l.ramp() + 2*settle + window + time.Second).Seconds())
	return scenario{
		Workload: "paced", Case: fmt.Sprintf("%d streams × %v/s", streams, rate), Modes: modes, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) { return l.run(ctx, b, mode) },
	}
}

// flat asks for everything at once. The naive design gets fewer deltas, since it
// would need minutes; what is compared are rates.
func flat(streams, deltas, naive int, ratios ...ratio) scenario {
	return scenario{
		Workload: "flat", Case: fmt.Sprintf("%d streams × %d deltas", streams, deltas), Modes: []string{Raw, Naive, Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			l := load{streams: streams, deltas: deltas}
			if mode == Naive {
				l.deltas = naive
			}
			return l.run(ctx, b, mode)
		},
	}
}

// ramp is how long it takes until the last stream begins.
func (l load) ramp() time.Duration {
	switch {
	case l.rate == 0:
		return 0
	case l.streams > 1000:
		return time.Duration(l.streams) * time.Second / crowd
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

// on runs the load against servers that are there.
func (l load) on(ctx context.Context, w *world) (Figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	command := guide.Script("").Bench(l.deltas, deltaSize, l.rate).String()
	readers := make([]*reader, l.streams)
	for i := range readers {
		readers[i] = &reader{client: w.client, command: command, deltas: l.deltas, first: make(chan struct{})}
		if i%cutEvery == 0 && w.mode != Raw { // the raw server keeps nothing to resume from
			readers[i].cut = l.deltas / 3
		}
	}
	before, err := w.usage()
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(readers))
	for i, r := range readers {
		wg.Go(func() {
			if l.rate > 0 {
				sleep(ctx, l.ramp()*time.Duration(i)/time.Duration(l.streams))
			}
			if errs[i] = r.run(ctx); errs[i] != nil {
				cancel(fmt.Errorf("stream %d of %d: %w", i, l.streams, errs[i]))
			}
		})
	}
	var in window
	if l.window > 0 {
		in, err = l.watch(ctx, w, readers)
		if err != nil {
			cancel(err)
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.window == 0 {
		in = whole(readers)
		after, err := w.usage()
		if err != nil {
			return nil, err
		}
		in.spent = after.since(before)
	}
	return l.figures(in, readers), nil
}

// window is the time that counts, and what the servers used in it.
type window struct {
	from, to int64 // Unix nanoseconds
	spent    usage
}

// watch waits until every stream runs, lets it settle, and measures.
func (l load) watch(ctx context.Context, w *world, readers []*reader) (in window, err error) {
	for _, r := range readers {
		select {
		case <-r.first:
		case <-ctx.Done():
			return in, context.Cause(ctx)
		}
	}
	sleep(ctx, settle)
	before, err := w.usage()
	if err != nil {
		return in, err
	}
	in.from = time.Now().UnixNano()
	sleep(ctx, l.window)
	in.to = time.Now().UnixNano()
	after, err := w.usage()
	in.spent = after.since(before)
	return in, err
}

// whole is from the first delta's emission to the last one's arrival.
func whole(readers []*reader) (in window) {
	for _, r := range readers {
		for _, s := range r.seen {
			if in.from == 0 || s.emitted < in.from {
				in.from = s.emitted
			}
			in.to = max(in.to, s.emitted+int64(s.waited))
		}
	}
	return in
}

// figures counts what arrived in the window, against what was due in it.
func (l load) figures(in window, readers []*reader) Figures {
	var waits []time.Duration
	offered, frames, deltas := 0, 0, 0
	for _, r := range readers {
		frames += r.frames
		deltas += len(r.seen)
		for i, s := range r.seen {
			if arrived := s.emitted + int64(s.waited); arrived >= in.from && arrived <= in.to {
				waits = append(waits, s.waited)
			}
			if l.rate > 0 {
				due := r.seen[0].emitted + int64(float64(i)/l.rate*1e9)
				if due >= in.from && due <= in.to {
					offered++
				}
			}
		}
	}
	f := Figures{
		Rate: float64(len(waits)) / time.Duration(in.to-in.from).Seconds(),
		Rows: float64(frames) / float64(deltas),
	}
	if l.rate > 0 {
		slices.Sort(waits)
		f[P50], f[P99] = ms(percentile(waits, 50)), ms(percentile(waits, 99))
		f[Delivered] = float64(len(waits)) / float64(offered)
	}
	in.spent.perMillion(f, len(waits))
	return f
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
