package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// seeds returns the number of runs of TestBrokenAppendLeavesNoHole; PARLEY_TEST_SEEDS sets it.
func seeds(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("PARLEY_TEST_SEEDS"))
	if err != nil {
		return 200
	}
	return n
}

// TestBrokenAppendLeavesNoHole writes an answer while the connection that appends it breaks once,
// at any byte of any exchange: reset, half-open or delayed. The next attempt continues after the
// stored text. The stored text equals the written text, without a hole or a repetition, and a
// reader gets exactly the rows.
func TestBrokenAppendLeavesNoHole(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	w := sessiontest.New(t)
	control := w.Replica(t)
	var seed, broken, attempts atomic.Int64
	var wg sync.WaitGroup
	n := int64(seeds(t))
	for range 6 {
		wg.Go(func() {
			lane := newLane(t, w, control)
			for i := seed.Add(1); i <= n && !t.Failed(); i = seed.Add(1) {
				lane.run(t, i, &broken, &attempts)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	t.Logf("%d seeds, %d connections broken, %d attempts", n, broken.Load(), attempts.Load())
	if !t.Failed() && broken.Load() < n/2 {
		t.Errorf("only %d of %d seeds broke a connection: too few for this test", broken.Load(), n)
	}
}

// lane is a replica behind a proxy, and one without.
type lane struct {
	w       *sessiontest.World
	control *sessiontest.Replica
	proxy   *faultproxy.Proxy
	store   *sessiontest.Replica
	other   eventlog.Lease

	mu   sync.Mutex
	hook func(c faultproxy.Chunk, appends bool) faultproxy.Action
}

func newLane(t *testing.T, w *sessiontest.World, control *sessiontest.Replica) *lane {
	t.Helper()
	proxy, dsn := dbtest.Proxy(t, w.DSN)
	direct, err := pgx.ParseConfig(w.DSN)
	if err != nil {
		t.Error(err)
	}
	l := &lane{w: w, control: control, proxy: proxy}
	l.watch()
	events := eventlog.Options{Listen: direct, AppendTimeout: 300 * time.Millisecond, Appenders: 1}
	l.store = sessiontest.NewReplica(dbtest.Pool(t, dsn), events, session.Options{})
	t.Cleanup(func() { proxy.Cut() }) // else pgx waits for frozen connections
	l.store.Start(t)
	l.other, _ = w.Begin(t, control, "another conversation")
	return l
}

// run holds one conversation.
func (l *lane) run(t *testing.T, seed int64, broken, attempts *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	pieces := make([]string, 20+rng.IntN(60))
	for i := range pieces {
		pieces[i] = fmt.Sprintf("%d.%d%s ", seed, i, strings.Repeat("x", rng.IntN(30)))
	}
	said := strings.Join(pieces, "")
	l.set(l.fault(rng, broken))
	defer l.set(nil)

	lease, from := l.w.Begin(t, l.control, "hello")
	for try := 0; ; try++ {
		attempts.Add(1)
		stored := l.stored(t, from)
		rest, isPrefix := strings.CutPrefix(said, stored)
		if !isPrefix {
			t.Errorf("seed %d: attempt %d finds text that was not written:\n%q\n%q", seed, try, stored, said)
			return
		}
		err := l.say(ctx, rng, lease, rest)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Errorf("seed %d: attempt %d: %v", seed, try, err)
			return
		}
		l.drain(t)
		if lease = l.again(t, lease); t.Failed() {
			return
		}
	}
	sessiontest.End(t, l.control, lease)
	if got := l.stored(t, from); got != said {
		t.Errorf("seed %d: stored\n%q, wrote\n%q", seed, got, said)
	}
}

// fault breaks one connection at a random byte of a random exchange of an append.
func (l *lane) fault(rng *rand.Rand, broken *atomic.Int64) func(c faultproxy.Chunk, appends bool) faultproxy.Action {
	skip, at, kind := rng.IntN(4), rng.IntN(2500), rng.IntN(40)
	pause := faultproxy.DelayBy(time.Duration(rng.IntN(20)) * time.Millisecond)
	matches := false
	hook := faultproxy.CutExchange(func(faultproxy.Chunk) bool {
		if !matches {
			return false
		}
		skip--
		return skip < 0
	}, at, func() { broken.Add(1) })
	return func(c faultproxy.Chunk, appends bool) faultproxy.Action {
		matches = appends
		a := hook(c)
		switch {
		case a == faultproxy.Forward || kind > 4:
			return a
		case kind == 0:
			return faultproxy.FreezeConn
		case kind == 1:
			return faultproxy.Swallow
		}
		return pause
	}
}

// watch passes every chunk to the fault of the current seed.
func (l *lane) watch() {
	appends := faultproxy.Executes("heads AS (")
	l.proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		is := appends(c)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.hook == nil {
			return faultproxy.Forward
		}
		return l.hook(c, is)
	})
}

func (l *lane) set(hook func(faultproxy.Chunk, bool) faultproxy.Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hook = hook
}

// say appends text in random pieces, sometimes with a durable step between two of them.
func (l *lane) say(ctx context.Context, rng *rand.Rand, lease eventlog.Lease, rest string) error {
	out := l.store.Writer(lease)
	for rest != "" {
		n := min(len(rest), 1+rng.IntN(60))
		if err := out.Append(ctx, event.Text{Text: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
		if rng.IntN(3) == 0 { // models are slow: the next piece waits behind a running batch
			<-time.After(time.Duration(rng.IntN(1000)) * time.Microsecond)
		}
		if rng.IntN(12) == 0 {
			if err := out.Append(ctx, event.ToolUse{Tool: "t"}); err != nil {
				return err
			}
		}
	}
	return out.Flush(ctx)
}

// drain returns when the store has processed all rows that waited behind the broken batch.
func (l *lane) drain(t *testing.T) {
	t.Helper()
	l.set(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if l.store.Writer(l.other).Append(ctx, event.ToolUse{Tool: "t"}) == nil {
			return
		}
	}
	t.Error("the store no longer appends")
}

// again releases the turn and claims it for the next attempt, as another replica would.
func (l *lane) again(t *testing.T, lease eventlog.Lease) eventlog.Lease {
	t.Helper()
	err := l.control.Update(t.Context(), lease.Session, func(tx *session.Tx) error {
		ok, err := tx.ReleaseTurn(t.Context(), lease, event.AfterCrash)
		if err == nil && !ok {
			err = errors.New("the lease is not the newest")
		}
		return err
	})
	if err != nil {
		t.Error(err)
		return lease
	}
	return sessiontest.Claim(t, l.control, lease.Session, lease.Turn)
}

// stored returns the text in the log, whose ordinals must have no gap.
func (l *lane) stored(t *testing.T, from eventlog.From) string {
	t.Helper()
	var text strings.Builder
	rows := l.control.Rows(t, from)
	for i, ev := range rows {
		if ev.Ord != rows[0].Ord+int64(i) {
			t.Errorf("ordinal %d follows %d", ev.Ord, rows[i-1].Ord)
		}
		if body, _ := ev.Body(); ev.Kind == event.KindText {
			text.WriteString(body.(event.Text).Text)
		}
	}
	return text.String()
}
