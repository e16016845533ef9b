package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

var failovers = flag.Int64("chaos.failovers", 2, "number of failovers of TestFailover")

// silentAtMost is how long a stream with news may be silent after a standby was promoted.
const silentAtMost = 5 * time.Second

// detection is the time after which a failover manager gives a silent primary up.
const detection = 3 * time.Second

// promotion is the moment at which a standby accepts writes.
type promotion struct {
	at     time.Time
	silent bool // the old primary did not close its connections
}

// TestFailover promotes a synchronous standby in the middle of streams. Clients and replicas are
// those of TestChaos: nothing that was accepted is lost, every reader receives exactly the rows of
// the log, and the streams continue within 5 seconds.
func TestFailover(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	db := newChaosDatabase(t)
	for seed := range *failovers {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			c := newChaosRun(t, db, newFailoverPlan(seed+1))
			c.checks = append(c.checks, c.measureSilence)
			c.execute()
		})
	}
}

// measureSilence checks how long streams were silent after each promotion. A stream with rows
// before and after it had news, unless its model was silent.
func (c *chaosRun) measureSilence() {
	for _, p := range c.promotions {
		for _, s := range c.sent {
			if len(s.bad) > 0 {
				continue
			}
			for i, at := range s.rows {
				if i == 0 || s.rows[i-1].After(p.at) || at.Before(p.at) {
					continue
				}
				silence := at.Sub(p.at)
				if c.silence = max(c.silence, silence); silence > silentAtMost {
					c.violation("the stream of %s was silent for %v after the promotion (silent=%t)", s.tag, silence, p.silent)
				}
			}
		}
	}
}

// TestUnreplicatedMessageIsNotAccepted stops the synchronous standby. Until it runs again no message
// is accepted, also not when it is repeated: the primary may be lost before the standby has it.
func TestUnreplicatedMessageIsNotAccepted(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	db := newChaosDatabase(t)
	dsns := db.newDSNs(t, true)
	w := newWorldOn(t, dbtest.PrimaryOf(dsns...))
	s := w.serve(t, nil)
	w.start(t, s, "@say before")
	db.machine.stop(db.servers[1-db.primary])
	t.Cleanup(db.machine.resume)
	send := func(ctx context.Context) error {
		req := w.messages(s, map[string]any{"command": "@say hello"})
		req.Header.Set("Idempotency-Key", "once")
		return w.stream(ctx, req, func(frame) bool { return false })
	}
	stopped := time.Now()
	for time.Since(stopped) < 10*time.Second {
		if send(t.Context()) == nil {
			t.Fatal("a message that the standby does not have was accepted")
		}
	}
	db.machine.resume()
	wait.For(t, "the message is accepted", func() bool { return send(t.Context()) == nil })
}
