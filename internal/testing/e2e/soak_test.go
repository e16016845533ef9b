package e2e_test

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/slow"
)

var soakFor = flag.Duration("chaos.soak", 0, "duration of TestSoak; 0: it does not run")

// sampleEvery is the pause between two samples of a soak.
const sampleEvery = 10 * time.Second

// newSoakPlan draws a plan of paced messages with a fault about every half minute. No fault restarts
// replica 1, whose memory is measured.
func newSoakPlan(seed int64, lasts time.Duration) chaosPlan {
	rng := rand.New(rand.NewPCG(uint64(seed), 2))
	kinds := slices.Sorted(maps.Keys(faultPlace))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return slices.Contains(longKinds, kind) })
	p := chaosPlan{seed: seed, kinds: kinds, clients: 6, goesOn: lasts, think: 3 * time.Second}
	for at := 20 * time.Second; at < lasts-30*time.Second; at += 10*time.Second + time.Duration(rng.Int64N(int64(40*time.Second))) {
		f := scheduledFault{kind: kinds[rng.IntN(len(kinds))], replica: rng.IntN(2), at: at, n: rng.IntN(4000)}
		if f.kind == faultKill || f.kind == faultTerm {
			f.replica = 0
		}
		f.lasts = 200*time.Millisecond + time.Duration(rng.Int64N(int64(5*time.Second)))
		p.faults = append(p.faults, f)
	}
	return p
}

// TestSoak runs paced clients with faults for as long as -chaos.soak says, and samples memory,
// connections and tables. The samples are a CSV file; the checks are those of TestChaos.
func TestSoak(t *testing.T) {
	slow.Test(t, "runs for long")
	if *soakFor == 0 {
		t.Skip("-chaos.soak says how long")
	}
	c := newChaosRun(t, newChaosDatabase(t), newSoakPlan(1, *soakFor))
	out, err := os.Create(filepath.Join(os.TempDir(), "parley-soak.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Log("samples: ", out.Name())
	ctx, stop := context.WithCancel(t.Context())
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		c.sample(ctx, csv.NewWriter(out))
	}()
	c.execute()
	stop()
	<-sampled
}

// sample writes a line every ten seconds until ctx ends.
func (c *chaosRun) sample(ctx context.Context, out *csv.Writer) {
	_ = out.Write([]string{"seconds", "rss0_mb", "rss1_mb", "threads1", "files1", "connections", "turns", "events", "events_mb", "jobs",
		"dead_rows", "autovacuums", "database_mb"})
	began := time.Now()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		line := []string{strconv.Itoa(int(time.Since(began).Seconds()))}
		for _, r := range c.replicas {
			line = append(line, r.status("VmRSS"))
		}
		line = append(line, c.replicas[1].status("Threads"), c.replicas[1].files())
		line = append(line, sampleDatabase(ctx, c.w.dsn)...)
		_ = out.Write(line)
		out.Flush()
	}
}

// sampleDatabase reads the database's columns of a sample; they are empty while it is down.
func sampleDatabase(ctx context.Context, dsn string) []string {
	ctx, cancel := context.WithTimeout(ctx, sampleEvery/2)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT x::text FROM (SELECT unnest(ARRAY[
		(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
		(SELECT count(*) FROM turns), (SELECT count(*) FROM events),
		(SELECT sum(pg_total_relation_size(relid)) / 1048576 FROM pg_partition_tree('events')),
		(SELECT count(*) FROM river_job), (SELECT sum(n_dead_tup) FROM pg_stat_user_tables),
		(SELECT sum(autovacuum_count) FROM pg_stat_user_tables), pg_database_size(current_database()) / 1048576]) AS x) q`)
	if err != nil {
		return nil
	}
	columns, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	return columns
}

// status returns a number of the process's status in /proc; memory in MB.
func (r *replica) status(name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid()))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			field := strings.Fields(value)
			if n, err := strconv.Atoi(field[0]); err == nil && len(field) > 1 {
				return strconv.Itoa(n / 1024)
			}
			return field[0]
		}
	}
	return ""
}

// files returns the number of files that the process has open.
func (r *replica) files() string {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.pid()))
	if err != nil {
		return ""
	}
	return strconv.Itoa(len(entries))
}

func (r *replica) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil || r.cmd.Process == nil {
		return 0
	}
	return r.cmd.Process.Pid
}
