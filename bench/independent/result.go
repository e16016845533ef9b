package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// result collects the streams of a run.
type result struct {
	began time.Time
	took  time.Duration

	mu      sync.Mutex
	turns   int
	deltas  int
	frames  int             // frames of text, in turns with deltas
	first   []time.Duration // request sent to first text received
	short   []time.Duration // the same for short turns only
	whole   []time.Duration // request sent to done received
	emitted []time.Duration // for each delta: emitted to received
	due     []time.Duration // for each paced delta: due to received
	answer  string          // answer to the short message; the offline model always gives the same one
	failed  []string
	refused map[int]int // by HTTP status
}

func (r *result) add(s *stream, status int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && s.pace == nil {
		if r.answer == "" {
			r.answer = s.answer.String()
		}
		if got := s.answer.String(); got != r.answer {
			err = fmt.Errorf("the answer %.80q differs from the one before: %.80q", got, r.answer)
		}
	}
	if err != nil {
		r.failed = append(r.failed, err.Error())
		if status >= 400 {
			if r.refused == nil {
				r.refused = map[int]int{}
			}
			r.refused[status]++
		}
		return
	}
	r.turns++
	if s.pace == nil {
		r.short = append(r.short, s.first)
	}
	r.first, r.whole = append(r.first, s.first), append(r.whole, s.whole)
	if s.pace != nil {
		r.deltas += len(s.received)
		r.frames += s.frames
		emitted, due := s.waits()
		r.emitted, r.due = append(r.emitted, emitted...), append(r.due, due...)
	}
}

func (r *result) err() error {
	if len(r.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d turns failed, the first one with: %s", len(r.failed), r.failed[0])
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "turns %d in %.1f s: %.1f a second; failed %d", r.turns, r.took.Seconds(), float64(r.turns)/r.took.Seconds(), len(r.failed))
	for status, n := range r.refused {
		fmt.Fprintf(w, ", %d of them with status %d", n, status)
	}
	fmt.Fprintln(w)
	if r.deltas > 0 {
		fmt.Fprintf(w, "deltas %d: %.0f a second; frames per delta %.3f\n",
			r.deltas, float64(r.deltas)/r.took.Seconds(), float64(r.frames)/float64(r.deltas))
	}
	for _, d := range []struct {
		name string
		of   []time.Duration
	}{
		{"request to first text", r.first}, {"request to done", r.whole},
		{"delta emitted to received", r.emitted}, {"delta due to received", r.due},
	} {
		if len(d.of) > 0 {
			fmt.Fprintf(w, "%-26s p50 %8.1f ms   p99 %8.1f ms   max %8.1f ms   (%d)\n",
				d.name, quantile(d.of, 0.5), quantile(d.of, 0.99), quantile(d.of, 1), len(d.of))
		}
	}
	for _, f := range r.failed[:min(5, len(r.failed))] {
		fmt.Fprintln(w, "failed:", f)
	}
}

// quantile returns the nearest rank in milliseconds; it sorts d.
func quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	i := min(int(q*float64(len(d))), len(d)-1)
	return float64(d[i].Microseconds()) / 1000
}
