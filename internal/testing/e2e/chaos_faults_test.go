package e2e_test

import (
	"context"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
)

// appendText is part of the statement that appends events.
const appendText = "INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)"

// inject runs the plan and then ends all faults.
func (c *chaosRun) inject(ctx context.Context) {
	start := time.Now()
	for _, step := range c.plan.steps() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(start.Add(step.at))):
		}
		if step.begin {
			c.logf("begin %v", step.fault)
			c.begin(step.fault)
		} else {
			c.end(step.fault)
		}
	}
	c.heal()
}

// begin injects a fault.
func (c *chaosRun) begin(f scheduledFault) {
	r := c.replicas[f.replica]
	switch f.kind {
	case faultCut: // reset all connections to the database
		r.eachProxy(cutLinks)
	case faultRefuse: // reset new connections as well
		r.eachProxy(func(p *faultproxy.Proxy) { p.Refuse(true) })
		r.eachProxy(cutLinks)
	case faultMidBatch: // reset one append after some of its bytes, or of its response's
		fired := func() { c.logf("reset an append on replica %d", f.replica) }
		r.eachProxy(func(p *faultproxy.Proxy) {
			p.OnChunk(faultproxy.CutExchange(faultproxy.Executes(appendText), f.n%1500, fired))
		})
	case faultHalfOpen, faultFreeze: // no byte passes; later the bytes are lost, or delivered late
		r.eachProxy((*faultproxy.Proxy).Freeze)
	case faultDelay:
		r.eachProxy(func(p *faultproxy.Proxy) { p.Delay(time.Duration(5+f.n%200) * time.Millisecond) })
	case faultStall: // one connection becomes half-open and stays so
		r.eachProxy(func(p *faultproxy.Proxy) { p.OnChunk(stallOne(f.n % 20)) })
	case faultKill:
		r.setUp(false)
		r.send(syscall.SIGKILL)
	case faultPause:
		r.send(syscall.SIGSTOP)
	case faultTerm:
		r.send(syscall.SIGTERM)
	case faultTerminate: // the database ends some of its sessions
		c.backends(`SELECT pg_terminate_backend(pid), pid FROM (` + chaosBackends + `) b WHERE hashint4(pid + ` + strconv.Itoa(f.n) + `) % 2 = 0`)
	case faultBackend: // one process of the database is stopped
		if pids := c.backends(`SELECT true, pid FROM (` + chaosBackends + `) b`); len(pids) > 0 {
			c.resumeBackend()
			c.stopped = pids[f.n%len(pids)]
			_ = syscall.Kill(c.stopped, syscall.SIGSTOP)
		}
	case faultDatabase:
		c.resumeBackend()
		c.db.crash()
	case faultFailover:
		c.resumeBackend()
		c.failOver(f.n%2 == 0)
	case faultDisk: // no space for PostgreSQL's data
		c.db.machine.fill()
	case faultClock: // PostgreSQL's clock jumps by up to 15 minutes
		if err := c.db.machine.shift(time.Duration(f.n%1800-900) * time.Second); err != nil {
			c.t.Error(err)
		}
	case faultStop: // all processes of PostgreSQL stand still
		c.resumeBackend()
		c.db.machine.stop(c.db.current())
	case faultDeploy: // the replica stops, and the other release starts
		r.deploy()
	case faultTool: // the server of the tool is slow, and fails
		c.shop.bad.Store(true)
	}
}

// failOver ends the primary and promotes the standby. A silent primary ends like a machine without
// power: its connections stay open and nothing answers.
func (c *chaosRun) failOver(silent bool) {
	if silent {
		for _, r := range c.replicas {
			r.proxies[c.db.primary].Freeze()
		}
	}
	c.db.crash()
	if silent {
		time.Sleep(detection)
	}
	promoted := c.db.failOver()
	c.mu.Lock()
	c.promotions = append(c.promotions, promotion{at: promoted, silent: silent})
	c.mu.Unlock()
	c.logf("promoted server %d", c.db.primary)
}

// rejoin makes the old primary a standby.
func (c *chaosRun) rejoin() {
	if !c.db.alone {
		return
	}
	c.db.rejoin()
	for _, r := range c.replicas {
		old := r.proxies[1-c.db.primary]
		old.Cut()
		old.Thaw()
	}
	c.logf("server %d is the standby", 1-c.db.primary)
}

func cutLinks(p *faultproxy.Proxy) { p.Cut() }

// end ends a fault that lasts.
func (c *chaosRun) end(f scheduledFault) {
	r := c.replicas[f.replica]
	switch f.kind {
	case faultRefuse:
		r.eachProxy(func(p *faultproxy.Proxy) { p.Refuse(false) })
	case faultMidBatch:
		r.eachProxy(func(p *faultproxy.Proxy) { p.OnChunk(nil) })
	case faultHalfOpen: // in half of the cases the replica does not notice it
		if f.n%2 == 0 {
			r.eachProxy(cutLinks)
		} else {
			r.eachProxy(func(p *faultproxy.Proxy) { p.Abandon(true) })
		}
		r.eachProxy((*faultproxy.Proxy).Thaw)
	case faultFreeze:
		r.eachProxy((*faultproxy.Proxy).Thaw)
	case faultDelay:
		r.eachProxy(func(p *faultproxy.Proxy) { p.Delay(0) })
	case faultStall:
		r.eachProxy(func(p *faultproxy.Proxy) { p.OnChunk(nil) }) // the connection stays silent
	case faultKill:
		r.setUp(true)
	case faultPause:
		r.send(syscall.SIGCONT)
	case faultBackend:
		c.resumeBackend()
	case faultDatabase:
		c.db.restart()
	case faultFailover:
		c.rejoin()
	case faultDisk:
		c.db.machine.free()
		c.db.mend()
	case faultClock:
		if err := c.db.machine.shift(0); err != nil {
			c.t.Error(err)
		}
	case faultStop:
		c.db.machine.resume()
	case faultTool:
		c.shop.bad.Store(false)
	}
}

// heal ends every active fault. Stalled connections stay stalled; PostgreSQL closes them, as its
// keep-alives would make it do.
func (c *chaosRun) heal() {
	c.resumeBackend()
	c.shop.bad.Store(false)
	c.db.machine.resume()
	c.db.machine.free()
	if err := c.db.machine.shift(0); err != nil {
		c.t.Error(err)
	}
	c.db.restart()
	c.db.mend()
	if len(c.db.servers) > 1 {
		c.rejoin()
	}
	for _, r := range c.replicas {
		r.eachProxy(func(p *faultproxy.Proxy) { p.OnChunk(nil) })
		r.eachProxy(func(p *faultproxy.Proxy) { p.Abandon(false) })
		r.eachProxy(func(p *faultproxy.Proxy) { p.Refuse(false) })
		r.eachProxy(func(p *faultproxy.Proxy) { p.Delay(0) })
		r.eachProxy((*faultproxy.Proxy).Thaw)
		r.send(syscall.SIGCONT)
		r.setUp(true)
	}
	c.logf("healed")
	c.healed = time.Now()
}

func (c *chaosRun) resumeBackend() {
	if c.stopped != 0 {
		_ = syscall.Kill(c.stopped, syscall.SIGCONT)
		c.stopped = 0
	}
}

// stallOne returns a hook that freezes the connection of the nth chunk to the server.
func stallOne(n int) faultproxy.Hook {
	return func(c faultproxy.Chunk) faultproxy.Action {
		if c.Direction == faultproxy.ToServer {
			n--
		}
		if n == -1 {
			return faultproxy.FreezeConn
		}
		return faultproxy.Forward
	}
}

// chaosBackends lists the database's processes that serve the replicas.
const chaosBackends = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY pid`

// backends runs a query for process ids on a connection of its own. If the database is down, it
// returns none.
func (c *chaosRun) backends(sql string) (pids []int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.w.dsn)
	if err != nil {
		return nil
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil
	}
	var ok bool
	var pid int
	_, _ = pgx.ForEachRow(rows, []any{&ok, &pid}, func() error {
		pids = append(pids, pid)
		return nil
	})
	return pids
}
