package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

const (
	gapWriters = 8
	gapEach    = 400 // events of each writer
	gapTries   = 10  // tries of the naive design, until it has lost a row
)

// gapScenario lets the writers of eight processes append to one session while a reader tails it by
// its cursor. The naive design loses rows permanently, or the test proves nothing; the service
// loses none.
func gapScenario(each int) scenario {
	return scenario{
		Workload: "gap", Case: fmt.Sprintf("%d foreign writers, 1 session", gapWriters), Modes: []string{Naive, Service},
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			if mode == Service {
				return gapOnce(ctx, b, mode, each)
			}
			total := Figures{}
			for range gapTries {
				f, err := gapOnce(ctx, b, mode, each)
				if err != nil {
					return nil, err
				}
				total[Lost] += f[Lost]
				total[Rate] = f[Rate]
				if total[Lost] > 0 {
					return total, nil
				}
			}
			return nil, errors.New("the naive design lost no row, so the test proves nothing about the service")
		},
		ratios: []ratio{
			{What: "rows lost by the naive design", Metric: Lost, Of: Naive, Least: 1},
			{What: "rows lost by the service", Metric: Lost, Of: Service, Most: none},
		},
	}
}

func gapOnce(ctx context.Context, b *bench, mode string, each int) (f Figures, err error) {
	dsn, drop, err := b.cluster.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	open := gapSession
	if mode == Naive {
		open = gapNaive
	}
	g, err := open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	return g.run(ctx, each)
}

// gapWorld is one session with its reader and its writers, on either log.
type gapWorld struct {
	writers []func(ctx context.Context, b event.Body) error
	follow  func(ctx context.Context, each func([]event.Event)) error
	rows    func(ctx context.Context) ([]event.Event, error)
	closers []func() error
}

func (g *gapWorld) close() error {
	var errs []error
	for _, c := range g.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (g *gapWorld) run(ctx context.Context, each int) (Figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errStopped)
	var newest atomic.Int64
	var seen []event.Event
	reading := make(chan error, 1)
	go func() {
		reading <- g.follow(ctx, func(evs []event.Event) {
			seen = append(seen, evs...)
			newest.Store(evs[len(evs)-1].Seq)
		})
	}()
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, len(g.writers))
	for i, write := range g.writers {
		wg.Go(func() {
			for n := range each {
				if errs[i] = write(ctx, event.ToolUse{Tool: "bench", Summary: fmt.Sprintf("%d.%d", i, n)}); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	rows, err := g.rows(ctx)
	if err != nil {
		return nil, err
	}
	if len(rows) != each*len(g.writers) {
		return nil, fmt.Errorf("%d rows instead of %d", len(rows), each*len(g.writers))
	}
	last := rows[len(rows)-1].Seq
	for waited := time.Now(); newest.Load() < last; sleep(ctx, time.Millisecond) {
		if time.Since(waited) > 10*time.Second {
			return nil, errors.New("the reader never reached the newest row")
		}
	}
	cancel(errStopped)
	// A running query reports only that its context was canceled.
	if err := <-reading; err != nil && !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	lost, err := countMissing(rows, seen)
	return Figures{Lost: float64(lost), Rate: float64(len(rows)) / took.Seconds()}, err
}

// countMissing counts the rows that the reader did not receive. The received rows must rise.
func countMissing(rows, seen []event.Event) (lost int, err error) {
	have := make(map[int64]bool, len(seen))
	cursor := int64(0)
	for _, ev := range seen {
		if ev.Seq <= cursor {
			return 0, fmt.Errorf("the reader saw row %d after row %d", ev.Seq, cursor)
		}
		cursor = ev.Seq
		have[ev.Seq] = true
	}
	for _, ev := range rows {
		if !have[ev.Seq] {
			lost++
		}
	}
	return lost, nil
}

func gapNaive(ctx context.Context, dsn string) (*gapWorld, error) {
	j, err := openNaive(ctx, dsn, gapWriters+2)
	if err != nil {
		return nil, err
	}
	s, id := j.begin()
	g := &gapWorld{rows: s.read, closers: []func() error{j.close}}
	for range gapWriters {
		g.writers = append(g.writers, s.append)
	}
	g.follow = func(ctx context.Context, each func([]event.Event)) error {
		for evs, err := range j.log.follow(ctx, id, 0) {
			if err != nil {
				return err
			}
			each(evs)
		}
		return nil
	}
	return g, nil
}

// gapSession gives every writer a store of its own: PostgreSQL sees separate processes.
func gapSession(ctx context.Context, dsn string) (g *gapWorld, err error) {
	g = &gapWorld{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	j, err := openJournal(ctx, Service, dsn, 6, 1)
	if err != nil {
		return g, err
	}
	g.closers = append(g.closers, j.close)
	journal := j.(*sessionJournal)
	lease, from, err := beginTurn(ctx, journal.store, journal.workspace.ID)
	if err != nil {
		return g, err
	}
	for range gapWriters {
		foreign, err := openStore(ctx, dsn, 4)
		if err != nil {
			return g, err
		}
		g.closers = append(g.closers, foreign.close)
		w := foreign.log.Writer(lease)
		g.writers = append(g.writers, func(ctx context.Context, b event.Body) error { return w.Append(ctx, b) })
	}
	g.rows = func(ctx context.Context) ([]event.Event, error) { return appendedEvents(ctx, journal.log, from) }
	g.follow = func(ctx context.Context, each func([]event.Event)) error {
		return followLog(ctx, journal.log, from, each)
	}
	return g, nil
}

func followLog(ctx context.Context, log *eventlog.Log, from eventlog.From, each func([]event.Event)) error {
	for evs, err := range log.Follow(ctx, from) {
		if err != nil {
			return err
		}
		each(evs)
	}
	return nil
}
