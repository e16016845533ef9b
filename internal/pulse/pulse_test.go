package pulse_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// statements counts the statements that a pool sends.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestPartsShareOneReading(t *testing.T) {
	t.Parallel()
	slow.Test(t, "waits for heartbeats")
	config, err := pgxpool.ParseConfig(dbtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	var sent statements
	config.ConnConfig.Tracer = &sent
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, began := pulse.New(pool), time.Now()
	var parts sync.WaitGroup
	for range 8 {
		parts.Go(func() {
			beats := 0
			for _, err := range p.Beats(ctx) {
				if err != nil {
					t.Error(err)
				}
				if beats++; beats == 3 {
					return
				}
			}
			t.Error("the beats ended")
		})
	}
	wait.Until(t, "all parts", parts.Wait)
	if beats := int64(time.Since(began)/pulse.Every) + 1; sent.n.Load() > beats {
		t.Errorf("%d statements in %d beats", sent.n.Load(), beats)
	}
}

// TestFailedReadingReportsAllWork makes the statement fail for a while. A part with its own checks
// is then notified of the end of the outage, too.
func TestFailedReadingReportsAllWork(t *testing.T) {
	t.Parallel()
	slow.Test(t, "waits for heartbeats")
	pool := dbtest.New(t)
	rename := func(from, to string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `ALTER TABLE `+from+` RENAME TO `+to); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := pulse.Work{Running: true, Queued: true, Overdue: true, Connects: true, Deliveries: true, Fetches: true, Streams: true,
		Paused: true, Written: true}
	const none, failing, recovering = 0, 1, 2
	stage := none
	for work, err := range pulse.New(pool).Beats(ctx) {
		switch {
		case stage == none && err == nil && work == pulse.Work{}:
			rename("open_streams", "gone")
			stage = failing
		case stage == failing && err != nil:
			if work != all {
				t.Errorf("a failed reading reports %+v", work)
			}
			rename("gone", "open_streams")
			stage = recovering
		case stage == recovering && err == nil:
			if work != all {
				t.Errorf("the first reading after a failed one reports %+v", work)
			}
			return
		}
	}
	t.Errorf("the beats ended at stage %d", stage)
}

// TestDrawnSeqReportsWriting draws a seq without committing an event: its commit may follow.
func TestDrawnSeqReportsWriting(t *testing.T) {
	t.Parallel()
	slow.Test(t, "waits for heartbeats")
	pool := dbtest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drawn := false
	for work, err := range pulse.New(pool).Beats(ctx) {
		switch {
		case err != nil:
		case !drawn && work.Written:
			t.Fatal("an empty log counts as written")
		case !drawn:
			if _, err := pool.Exec(ctx, `SELECT nextval('events_seq_seq')`); err != nil {
				t.Fatal(err)
			}
			drawn = true
		case work.Written:
			return
		}
	}
	t.Error("the seq was not noticed")
}
