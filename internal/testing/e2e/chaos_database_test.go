package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// chaosDatabase is one PostgreSQL or, with a standby, two of which a failover swaps the roles. Its
// methods are called by one goroutine.
type chaosDatabase struct {
	t       testing.TB
	machine *chaosMachine
	servers []*dbtest.Server
	primary int  // index of the server that accepts writes
	down    bool // the primary was stopped
	alone   bool // the other server has not rejoined since a failover
}

// newChaosDatabase starts PostgreSQL.
func newChaosDatabase(t testing.TB) *chaosDatabase {
	t.Helper()
	m := newChaosMachine(t)
	return &chaosDatabase{t: t, machine: m, servers: []*dbtest.Server{m.newServer(t)}}
}

// addStandby starts a synchronous standby, unless there is one.
func (d *chaosDatabase) addStandby() {
	d.t.Helper()
	if len(d.servers) == 1 {
		d.servers = append(d.servers, d.machine.newServer(d.t))
		d.alone = true
	}
	d.rejoin()
}

// newDSNs creates a database for a test and returns its address on each server.
func (d *chaosDatabase) newDSNs(t testing.TB, standby bool) []string {
	d.t.Helper()
	if standby {
		d.addStandby()
	}
	dsns := []string{d.current().DSN()}
	config, err := pgx.ParseConfig(dsns[0])
	if err != nil {
		d.t.Fatal(err)
	}
	t.Cleanup(func() { d.drop(config.Database) })
	if !standby {
		return dsns
	}
	other := d.servers[1-d.primary]
	other.AwaitDatabase(config.Database)
	dsns = append(dsns, other.Database(config.Database))
	if d.primary == 1 {
		dsns[0], dsns[1] = dsns[1], dsns[0]
	}
	return dsns
}

// drop removes a database: the small file system has no room for those of hundreds of runs.
func (d *chaosDatabase) drop(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.current().Admin())
	if err != nil {
		d.t.Logf("drop %s: %v", name, err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		d.t.Logf("drop %s: %v", name, err)
	}
}

func (d *chaosDatabase) current() *dbtest.Server { return d.servers[d.primary] }

// crash stops the primary at once.
func (d *chaosDatabase) crash() {
	if !d.down {
		d.current().Crash()
		d.down = true
	}
}

// restart starts the primary after a crash.
func (d *chaosDatabase) restart() {
	if d.down {
		d.current().Start()
		d.down = false
	}
}

// mend starts the servers again that stopped by themselves.
func (d *chaosDatabase) mend() {
	for i, s := range d.servers {
		if i != d.primary && d.alone || len(s.Processes()) > 0 {
			continue
		}
		s.Stop()
		s.Start()
	}
	d.down = false
}

// failOver promotes the standby after a crash of the primary, and returns when it accepts writes.
func (d *chaosDatabase) failOver() time.Time {
	d.primary, d.down, d.alone = 1-d.primary, false, true
	d.current().Promote()
	return time.Now()
}

// rejoin makes the server that is not the primary its standby again.
func (d *chaosDatabase) rejoin() {
	if d.alone {
		d.restart()
		d.servers[1-d.primary].FollowPrimary(d.current())
		d.alone = false
	}
}
