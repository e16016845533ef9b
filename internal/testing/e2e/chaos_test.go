package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

var (
	chaosSeed  = flag.Int64("chaos.seed", 0, "first seed of TestChaos; 0: the short set of the normal test suite")
	chaosKeep  = flag.Bool("chaos.keep", false, "keep the logs of runs without violations too")
	overWithin = flag.Duration("chaos.over", 30*time.Second,
		"time after the last fault within which every turn ends; longer on a busy machine")
	chaosSeeds = flag.Int64("chaos.seeds", 1, "number of seeds, with -chaos.seed")
)

// shortSeeds are the runs of the normal test suite. Together they have every kind of fault.
var shortSeeds = []int64{138, 139, 140, 141, 142, 143}

// TestChaos lets clients work with two replicas and one PostgreSQL while faults happen that follow
// from a seed, and then compares the stored rows with the frames of the clients and the text of the
// model. CONTRIBUTING.md explains how to run it with other seeds.
func TestChaos(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	db := newChaosDatabase(t)
	seeds := shortSeeds
	if *chaosSeed != 0 {
		seeds = nil
		for i := range *chaosSeeds {
			seeds = append(seeds, *chaosSeed+i)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newChaosRun(t, db, newChaosPlan(seed, *chaosSeed == 0)).execute() })
	}
}

// chaosRun is one seed's run.
type chaosRun struct {
	t        *testing.T
	plan     chaosPlan
	db       *chaosDatabase
	w        *world
	replicas [2]*replica
	dir      string // logs, and the records of a failure
	log      *os.File
	shop     *chaosShop
	provider *chaosProvider
	checks   []func() // in addition to those of every run

	// Only the goroutine that injects faults uses these.
	stopped int // process id of a stopped backend
	healed  time.Time
	slowest time.Duration // the slowest reading of readAgain
	resumed int           // attempts that continued a turn, after a takeover, a hand-over or a question
	silence time.Duration // the longest silence of a stream after a promotion

	secretKey string // an API key that may provide secrets

	mu          sync.Mutex
	promotions  []promotion
	sent        []*sentMessage
	connections []*connection
	violations  []string
}

func newChaosRun(t *testing.T, db *chaosDatabase, plan chaosPlan) *chaosRun {
	t.Helper()
	servers := db.newDSNs(t, slices.Contains(plan.kinds, faultFailover))
	c := &chaosRun{t: t, plan: plan, db: db, w: newWorldOn(t, dbtest.PrimaryOf(servers...))}
	c.w.parley(t, "workspace", "update", "w", "--max-running", "200")
	c.w.approver(t) // before clients run at the same time
	transport := &http.Transport{ResponseHeaderTimeout: 20 * time.Second, MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	c.w.client = &http.Client{Transport: transport}
	var err error
	if c.dir, err = os.MkdirTemp("", fmt.Sprintf("parley-chaos-%d-", plan.seed)); err != nil {
		t.Fatal(err)
	}
	if c.log, err = os.Create(filepath.Join(c.dir, "chaos.log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.log.Close() })
	c.openShop()
	c.openProvider()
	if plan.prepare != nil {
		plan.prepare(c)
	}
	plan.env = append(plan.env, c.w.env...)
	for i := range c.replicas {
		var once []string
		if plan.crash != "" && (i == 0 || plan.both) {
			once = []string{"FAULT=" + plan.crash}
		}
		c.replicas[i] = c.w.newReplica(t, filepath.Join(c.dir, fmt.Sprintf("replica-%d.log", i)), servers, plan.env, once)
	}
	for _, r := range c.replicas {
		wait.For(t, "a replica is ready", func() bool { return r.ready() })
	}
	return c
}

func (r *replica) ready() bool {
	res, err := brief.Get(r.url + "/readyz")
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// execute runs clients and faults, waits for the turns to end, and checks everything.
func (c *chaosRun) execute() {
	fmt.Fprint(c.log, c.plan)
	start := time.Now()
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	var clients, beside sync.WaitGroup
	for i := range c.plan.clients {
		client := &chaosClient{run: c, rng: rand.New(rand.NewPCG(uint64(c.plan.seed), uint64(i+1)))}
		clients.Go(func() { client.work(ctx, fmt.Sprintf("c%d", i), c.plan.turns) })
	}
	if c.plan.beside != nil {
		beside.Go(func() { c.plan.beside(ctx, c) })
	}
	c.inject(ctx)
	finished := make(chan struct{})
	go func() {
		clients.Wait()
		close(finished)
	}()
	limit := *overWithin
	if slow.Race {
		limit *= 2
	}
	select {
	case <-finished:
	case <-time.After(time.Until(c.healed.Add(limit))):
		c.unfinished(limit)
	}
	over := time.Since(c.healed)
	stop()
	wait.Receive(c.t, "the end of the clients", finished)
	wait.Until(c.t, "the end of the other readers", beside.Wait)
	if c.plan.settle != nil {
		c.plan.settle(c)
	}
	c.check()
	c.report(time.Since(start), over)
}

// report prints the outcome, and keeps logs and rows of a failed run.
func (c *chaosRun) report(took, over time.Duration) {
	spoiled, excused := c.provider.failures()
	summary := fmt.Sprintf(
		"seed %d: %d faults of %s, %d messages, %d resumed attempts, %d connections, %d bad replies of the provider with %d failed "+
			"turns, %v in all, over %v after the last fault, read again in %v",
		c.plan.seed, len(c.plan.faults), strings.Join(c.plan.kinds, " "), len(c.sent), c.resumed, len(c.connections), spoiled, excused,
		took.Round(100*time.Millisecond), over.Round(100*time.Millisecond), c.slowest.Round(time.Millisecond))
	for _, p := range c.promotions {
		summary += fmt.Sprintf(", promoted (silent=%t), streams silent for %v", p.silent, c.silence.Round(time.Millisecond))
	}
	if len(c.violations) == 0 {
		c.t.Log(summary)
		if *chaosKeep {
			c.t.Log("logs: ", c.dir)
			return
		}
		_ = os.RemoveAll(c.dir)
		return
	}
	c.dump()
	for _, v := range c.violations {
		fmt.Fprintln(c.log, "VIOLATION", v)
	}
	c.t.Errorf("%s\n%s\nplan:\n%v\nlogs and rows: %s\nrun it again: make chaos SEED=%d", summary, strings.Join(c.violations, "\n"), c.plan,
		c.dir, c.plan.seed)
}

func (c *chaosRun) logf(format string, args ...any) {
	fmt.Fprintf(c.log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

func (c *chaosRun) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := fmt.Sprintf(format, args...); len(c.violations) < 20 {
		c.violations = append(c.violations, fmt.Sprintf("%.600s", v))
	}
}

func (c *chaosRun) note(m *chaosMessage) *sentMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sentMessage{chaosMessage: m}
	c.sent = append(c.sent, s)
	c.provider.add(m)
	return s
}

// saw stores the frames of a connection, and checks why it ended.
func (c *chaosRun) saw(conn *connection, err error) {
	c.mu.Lock()
	c.connections = append(c.connections, conn)
	c.mu.Unlock()
	if status, ok := errors.AsType[statusError](err); ok {
		c.refused(conn.tag, status.res, status.body)
	}
}
