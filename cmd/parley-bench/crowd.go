package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/model/builtin"
)

// shortTurn is a message in a new session whose answer is one delta.
func shortTurn(c *client) *reader {
	return &reader{client: c, command: builtin.Script("").Bench(1, deltaSize, 0).String(), deltas: 1}
}

// warmUp runs some turns that do not count.
func (w *world) warmUp(ctx context.Context) error {
	for range turnWarmUp {
		if err := shortTurn(w.client).run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func firstWaits(readers []*reader) (waits []time.Duration) {
	for _, r := range readers {
		waits = append(waits, r.waited)
	}
	return waits
}

// burstScenario sends many messages at once, with the default limits of a workspace.
func burstScenario(messages int, ratios ...ratio) scenario {
	return scenario{
		Workload: "burst", Case: fmt.Sprintf("%d messages at once", messages), Modes: []string{Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return onWarm(ctx, b, mode, func(w *world) (Figures, error) {
				return sendCrowd(ctx, w, func(send func()) {
					for range messages {
						send()
					}
				})
			})
		},
	}
}

// offeredScenario sends short messages at a steady rate, whether or not earlier ones have ended.
func offeredScenario(rate float64, span time.Duration, ratios ...ratio) scenario {
	return scenario{
		Workload: "offered", Case: fmt.Sprintf("%v turns a second", rate), Modes: []string{Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return onWarm(ctx, b, mode, func(w *world) (Figures, error) {
				return sendCrowd(ctx, w, func(send func()) {
					began := time.Now()
					for i := range int(rate * span.Seconds()) {
						sleep(ctx, time.Until(began.Add(time.Duration(float64(i)/rate*1e9))))
						send()
					}
				})
			})
		},
	}
}

// shortScenario lets clients send one short message after the other, each in a new session.
func shortScenario(clients int, span time.Duration, ratios ...ratio) scenario {
	return scenario{
		Workload: "short", Case: fmt.Sprintf("%d clients", clients), Modes: []string{Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return onWarm(ctx, b, mode, func(w *world) (Figures, error) { return shortOnce(ctx, w, clients, span) })
		},
	}
}

// onWarm runs a load on servers that have run some turns, with the default limits.
func onWarm(ctx context.Context, b *bench, mode string, do func(*world) (Figures, error)) (f Figures, err error) {
	w, err := b.open(ctx, mode, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.warmUp(ctx); err != nil {
		return nil, err
	}
	return do(w)
}

// sendCrowd sends messages according to plan, without waiting for answers. It counts 503 responses;
// waits are reported only without them, since the waits of the other messages alone look too good.
func sendCrowd(ctx context.Context, w *world, plan func(send func())) (Figures, error) {
	before, err := w.meter(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var readers []*reader
	var errs []error
	rejected := 0
	began := time.Now()
	plan(func() {
		r := shortTurn(w.client)
		wg.Go(func() {
			err := r.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			var answer *statusError
			switch {
			case err == nil:
				readers = append(readers, r)
			case errors.As(err, &answer) && answer.code == http.StatusServiceUnavailable:
				rejected++
			default:
				errs = append(errs, err)
			}
		})
	})
	wg.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	f := Figures{Rejected: float64(rejected)}
	if rejected == 0 {
		waits := firstWaits(readers)
		f[Rate] = float64(len(readers)) / took.Seconds()
		f[FirstP50], f[FirstP99] = milliseconds(percentile(waits, 50)), milliseconds(percentile(waits, 99))
	}
	return f, w.turnCosts(ctx, f, before, len(readers))
}

func shortOnce(ctx context.Context, w *world, clients int, span time.Duration) (Figures, error) {
	before, err := w.meter(ctx)
	if err != nil {
		return nil, err
	}
	done := make([][]*reader, clients)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range clients {
		wg.Go(func() {
			for time.Since(began) < span && errs[i] == nil {
				r := shortTurn(w.client)
				errs[i] = r.run(ctx)
				done[i] = append(done[i], r)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var waits []time.Duration
	for _, readers := range done {
		waits = append(waits, firstWaits(readers)...)
	}
	f := Figures{Rate: float64(len(waits)) / took.Seconds(), FirstP50: milliseconds(percentile(waits, 50)),
		FirstP99: milliseconds(percentile(waits, 99))}
	return f, w.turnCosts(ctx, f, before, len(waits))
}

// turnCosts adds the costs of turns, including the work after their last frames.
func (w *world) turnCosts(ctx context.Context, f Figures, before meter, turns int) error {
	sleep(ctx, afterwards)
	after, err := w.meter(ctx)
	if err != nil || turns == 0 {
		return err
	}
	w.perTurn(f, before, after, turns)
	return w.commitsPerTurn(ctx, f, before, turns)
}

// afterwards is the time for the servers to complete the jobs of the last turns.
const afterwards = 500 * time.Millisecond
