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
		r.proxy.Cut()
	case faultRefuse: // reset new connections as well
		r.proxy.Refuse(true)
		r.proxy.Cut()
	case faultMidBatch: // reset one append after some of its bytes, or of its response's
		r.proxy.OnChunk(faultproxy.CutExchange(faultproxy.Executes(appendText), f.n%1500, func() { c.logf("reset an append on replica %d", f.replica) }))
	case faultHalfOpen, faultFreeze: // no byte passes; later the bytes are lost, or delivered late
		r.proxy.Freeze()
	case faultDelay:
		r.proxy.Delay(time.Duration(5+f.n%200) * time.Millisecond)
	case faultStall: // one connection becomes half-open and stays so
		r.proxy.OnChunk(stallOne(f.n % 20))
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
		c.db.Crash()
		c.dbDown = true
	}
}

// end ends a fault that lasts.
func (c *chaosRun) end(f scheduledFault) {
	r := c.replicas[f.replica]
	switch f.kind {
	case faultRefuse:
		r.proxy.Refuse(false)
	case faultMidBatch:
		r.proxy.OnChunk(nil)
	case faultHalfOpen: // in half of the cases the replica does not notice it
		if f.n%2 == 0 {
			r.proxy.Cut()
		} else {
			r.proxy.Abandon(true)
		}
		r.proxy.Thaw()
	case faultFreeze:
		r.proxy.Thaw()
	case faultDelay:
		r.proxy.Delay(0)
	case faultStall:
		r.proxy.OnChunk(nil) // the connection stays silent
	case faultKill:
		r.setUp(true)
	case faultPause:
		r.send(syscall.SIGCONT)
	case faultBackend:
		c.resumeBackend()
	case faultDatabase:
		if c.dbDown {
			c.db.Start()
			c.dbDown = false
		}
	}
}

// heal ends every active fault. Stalled connections stay stalled; PostgreSQL closes them, as its
// keep-alives would make it do.
func (c *chaosRun) heal() {
	c.resumeBackend()
	if c.dbDown {
		c.db.Start()
		c.dbDown = false
	}
	for _, r := range c.replicas {
		r.proxy.OnChunk(nil)
		r.proxy.Abandon(false)
		r.proxy.Refuse(false)
		r.proxy.Delay(0)
		r.proxy.Thaw()
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
