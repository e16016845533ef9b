package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
)

// errStopped ends a part that runs until the bench has enough data.
var errStopped = errors.New("the run is over")

// appendScenario measures durable acknowledgments: every producer waits for the commit of one event
// before it appends the next to its own session.
func appendScenario(producers int, span time.Duration) scenario {
	return scenario{
		Workload: "append", Case: fmt.Sprintf("%d producers", producers), Modes: []string{Naive, Service},
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return appendOnce(ctx, b, mode, producers, span)
		},
		ratios: appendRatios(producers),
	}
}

func appendRatios(producers int) []ratio {
	rate := ratio{What: "acknowledgements: service to naive", Metric: Rate, Of: Service, To: Naive}
	tail := ratio{What: "p99: service to naive", Metric: P99, Of: Service, To: Naive}
	if producers == 64 {
		rate.Least, tail.Most = 12, 1./15
	}
	return []ratio{rate, tail}
}

func appendOnce(ctx context.Context, b *bench, mode string, producers int, span time.Duration) (f Figures, err error) {
	dsn, drop, err := b.cluster.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	// The naive design commits on as many connections as it has writers, up to a limit.
	j, err := openJournal(ctx, mode, dsn, int32(min(producers, 64)+4), producers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.close()) }()

	subjects := make([]subject, producers)
	for i := range subjects {
		if subjects[i], err = j.subject(ctx); err != nil {
			return nil, err
		}
	}
	counts := make([]int, producers)
	waits := make([][]time.Duration, producers)
	errs := make([]error, producers)
	before := ownUsage().plus(postgresUsage(b.cluster.postmaster))
	began := time.Now()
	until, cancel := context.WithDeadlineCause(ctx, began.Add(span), errStopped)
	defer cancel()
	var wg sync.WaitGroup
	for i, s := range subjects {
		wg.Go(func() {
			for until.Err() == nil && errs[i] == nil {
				asked := time.Now()
				if errs[i] = s.append(ctx, event.ToolUse{Tool: "bench", Summary: fmt.Sprintf("%06d", counts[i])}); errs[i] == nil {
					waits[i] = append(waits[i], time.Since(asked))
					counts[i]++
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	spent := ownUsage().plus(postgresUsage(b.cluster.postmaster)).since(before)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	var all []time.Duration
	for i, s := range subjects {
		evs, err := s.read(ctx)
		if err == nil {
			err = checkNumbered(evs, counts[i])
		}
		if err != nil {
			return nil, fmt.Errorf("producer %d: %w", i, err)
		}
		all = append(all, waits[i]...)
	}
	f = Figures{Rate: float64(len(all)) / took.Seconds(), P50: milliseconds(percentile(all, 50)), P99: milliseconds(percentile(all, 99))}
	spent.perMillion(f, len(all))
	return f, nil
}

// checkNumbered checks that a session contains exactly n acknowledged events, in order.
func checkNumbered(evs []event.Event, n int) error {
	if len(evs) != n {
		return fmt.Errorf("%d rows for %d acknowledgements", len(evs), n)
	}
	for i, ev := range evs {
		body, err := ev.Body()
		if err != nil {
			return err
		}
		if use, ok := body.(event.ToolUse); !ok || use.Summary != fmt.Sprintf("%06d", i) {
			return fmt.Errorf("row %d is %.60s", i, ev.Data)
		}
	}
	return nil
}
