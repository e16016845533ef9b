package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/session"
)

const seedPage = 1000 // events per transaction while a session is created

// replayScenario lets many readers read a finished session at once, from its beginning or from its
// middle.
func replayScenario(events, readers int, middle bool, ratios ...ratio) scenario {
	skip, where := 0, "the beginning"
	if middle {
		skip, where = events/2, "the middle"
	}
	return scenario{
		Workload: "replay", Case: fmt.Sprintf("%d events from %s × %d", events, where, readers), Modes: []string{Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return replayOnce(ctx, b, mode, events, readers, skip)
		},
	}
}

func replayOnce(ctx context.Context, b *bench, mode string, events, readers, skip int) (f Figures, err error) {
	w, err := b.open(ctx, mode, noTurns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	id, seqs, err := seedDeltas(ctx, w, events)
	if err != nil {
		return nil, err
	}
	cursor := "0"
	if skip > 0 {
		cursor = strconv.FormatInt(seqs[skip-1], 10)
	}
	before, err := w.meter(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	took := make([]time.Duration, readers)
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			r := &reader{client: w.client, session: id.String(), deltas: events, tally: builtin.Tally{Next: skip}}
			errs[i] = r.replay(ctx, cursor)
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	total := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	after, err := w.meter(ctx)
	if err != nil {
		return nil, err
	}
	n := readers * (events - skip)
	f = Figures{Rate: float64(n) / total.Seconds(), P50: milliseconds(percentile(took, 50)), P99: milliseconds(percentile(took, 99))}
	after.usage.since(before.usage).perMillion(f, n)
	return f, nil
}

// replay reads the events after a cursor to the end.
func (r *reader) replay(ctx context.Context, cursor string) error {
	c, err := r.client.resume(ctx, r.session, cursor)
	if err != nil {
		return err
	}
	done, err := r.read(ctx, c)
	if err == nil && !done {
		err = errors.New("the stream ended without done")
	}
	if err == nil {
		err = r.tally.Whole(r.deltas)
	}
	if err != nil {
		return fmt.Errorf("session %s: %w", r.session, err)
	}
	return nil
}

// seedDeltas creates a finished turn with one row for each delta, as slow models leave it.
func seedDeltas(ctx context.Context, w *world, n int) (id uuid.UUID, seqs []int64, err error) {
	store := session.New(w.pool, eventlog.New(w.pool, eventlog.Options{}), session.Options{}) // it is not started: no stream reads here
	lease, from, err := beginTurn(ctx, store, w.workspace.ID)
	if err != nil {
		return id, nil, err
	}
	deltas, err := stampedDeltas(ctx, n)
	if err != nil {
		return id, nil, err
	}
	for len(deltas) > 0 {
		page := deltas[:min(seedPage, len(deltas))]
		deltas = deltas[len(page):]
		err := store.Update(ctx, from.Session, func(tx *session.Tx) error {
			evs, err := tx.Append(ctx, lease.Turn, page...)
			for _, ev := range evs {
				seqs = append(seqs, ev.Seq)
			}
			return err
		})
		if err != nil {
			return id, nil, err
		}
	}
	return from.Session, seqs, store.Update(ctx, from.Session, func(tx *session.Tx) error {
		c, err := tx.ReadClosing(ctx, session.Turn{ID: lease.Turn, SessionID: lease.Session})
		if err != nil {
			return err
		}
		ok, err := tx.EndTurn(ctx, c, session.Ending{Trigger: session.Complete, Epoch: lease.Epoch, Halted: true})
		if err == nil && !ok {
			err = errors.New("the turn cannot be ended")
		}
		return err
	})
}

// stampedDeltas lets the model write n deltas.
func stampedDeltas(ctx context.Context, n int) ([]event.Body, error) {
	deltas := make([]event.Body, 0, n)
	ask := model.Message{Role: model.User, Text: builtin.Script("").Bench(n, deltaSize, 0).String()}
	for chunk, err := range builtin.New().Generate(ctx, model.Request{Messages: []model.Message{ask}}) {
		if err != nil {
			return nil, err
		}
		if chunk.Text != "" {
			deltas = append(deltas, event.Text{Text: chunk.Text})
		}
	}
	return deltas, nil
}
