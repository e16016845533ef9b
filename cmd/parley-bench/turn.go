package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const turnWarmUp = 5 // turns before the measurement: connections are opened, statements prepared

// startScenario measures the time to the first text, for turns one by one or at a rate. Beside it
// is the part of the queue, from the turn's row to the worker that has taken it, and the same with
// River's own settings.
func startScenario(n int, rate float64, ratios ...ratio) scenario {
	name := "one at a time"
	if rate > 0 {
		name = fmt.Sprintf("%v turns a second", rate)
	}
	return scenario{
		Workload: "turn", Case: name, Modes: []string{Default, Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return startingOnce(ctx, b, mode, n, rate)
		},
	}
}

func startingOnce(ctx context.Context, b *bench, mode string, n int, rate float64) (f Figures, err error) {
	w, err := b.open(ctx, mode, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.warmUp(ctx); err != nil {
		return nil, err
	}
	readers := make([]*reader, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range readers {
		readers[i] = shortTurn(w.client)
		if rate == 0 {
			sleep(ctx, rand.N(50*time.Millisecond)) // not in step with any timer
			errs[i] = readers[i].run(ctx)
			continue
		}
		sleep(ctx, time.Until(began.Add(time.Duration(float64(i)/rate*1e9))))
		wg.Go(func() { errs[i] = readers[i].run(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	waits := firstWaits(readers)
	queued, err := queueTimes(ctx, w, n)
	if err != nil {
		return nil, err
	}
	return Figures{
		FirstP50: milliseconds(percentile(waits, 50)), FirstP99: milliseconds(percentile(waits, 99)),
		StartP50: milliseconds(percentile(queued, 50)), StartP99: milliseconds(percentile(queued, 99)),
	}, nil
}

// queueTimes returns the times from the transaction that queued a turn to the one that claimed it,
// by PostgreSQL's clock.
func queueTimes(ctx context.Context, w *world, n int) ([]time.Duration, error) {
	rows, err := w.pool.Query(ctx, `SELECT extract(epoch FROM started_at - created_at)::float8 FROM turns
		WHERE state = 'completed' ORDER BY created_at OFFSET $1`, turnWarmUp)
	if err != nil {
		return nil, fmt.Errorf("read the turns: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (time.Duration, error) {
		var seconds float64
		err := row.Scan(&seconds)
		return time.Duration(seconds * 1e9), err
	})
	if err == nil && len(all) != n {
		err = fmt.Errorf("%d completed turns instead of %d", len(all), n)
	}
	return all, err
}
