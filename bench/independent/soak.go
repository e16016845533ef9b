package main

import (
	"flag"
	"fmt"
	"sync"
	"time"
)

// soak sends short turns and writes deltas for a long time, and prints a line per minute. It shows
// whether checkpoints, autovacuum and growing tables increase latency.
func soak(f *flag.FlagSet, args []string) workload {
	rate := f.Float64("turns", 200, "short turns a second")
	streams := f.Int("streams", 400, "turns that write deltas at the same moment")
	pace := f.Int("rate", 20, "deltas a second in each")
	each := f.Duration("each", 30*time.Second, "how long such a turn lasts; then another one follows in its place")
	last := f.Duration("for", 20*time.Minute, "how long")
	every := f.Duration("every", time.Minute, "time that a line covers")
	f.Parse(args)
	p := newPace(int(each.Seconds()*float64(*pace)), *pace)
	short := int(*rate) // places for the short turns, each of which takes much less than a second
	return workload{running: *streams + short, run: func(s *site) *result {
		printSizes(s, "at the beginning")
		fmt.Printf("%8s %8s %8s  %22s  %22s  %22s\n", "time", "turns/s", "deltas/s", "first text p50/p99 ms", "emitted p50/p99 ms",
			"due p50/p99 ms")
		total := collect(func(r *result, all *sync.WaitGroup) {
			all.Go(func() { r.offer(s, *rate, *last, all) })
			for i := range *streams {
				all.Go(func() {
					time.Sleep(*each * time.Duration(i) / time.Duration(*streams))
					for time.Since(r.began)+*each <= *last {
						r.send(s, p.command(), p)
					}
				})
			}
			stop := make(chan struct{})
			ended := make(chan struct{})
			go func() { defer close(ended); r.lines(s, *every, stop) }()
			all.Wait()
			close(stop)
			<-ended
		})
		printSizes(s, "at the end")
		return total
	}}
}

// lines prints the figures of each span of time and drops them: twenty minutes have ten million. A
// span includes the short turns that end in it and the deltas whose turn ends in it.
func (r *result) lines(s *site, every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var turns, deltas int
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		r.mu.Lock()
		span := result{turns: r.turns - turns, deltas: r.deltas - deltas, first: r.short, emitted: r.emitted, due: r.due}
		turns, deltas = r.turns, r.deltas
		r.short, r.first, r.whole, r.emitted, r.due = nil, nil, nil, nil, nil
		failed := len(r.failed)
		r.mu.Unlock()
		fmt.Printf("%8s %8.1f %8.0f  %10.1f %11.1f  %10.1f %11.1f  %10.1f %11.1f", time.Duration(n)*every,
			float64(span.turns)/every.Seconds(), float64(span.deltas)/every.Seconds(),
			quantile(span.first, 0.5), quantile(span.first, 0.99), quantile(span.emitted, 0.5), quantile(span.emitted, 0.99),
			quantile(span.due, 0.5), quantile(span.due, 0.99))
		if failed > 0 {
			fmt.Printf("  failed so far %d", failed)
		}
		fmt.Println()
	}
}

// sizes lists the largest tables with their partitions, indexes and dead rows.
const sizes = `
SELECT format('%-22s %12s %12s %12s %12s', 'table', 'rows', 'dead rows', 'table', 'indexes')
UNION ALL (
	SELECT format('%-22s %12s %12s %12s %12s', name, sum(live), sum(dead), pg_size_pretty(sum(heap)), pg_size_pretty(sum(indexes)))
	FROM (SELECT coalesce((SELECT c.relname FROM pg_partition_tree(s.relid) t, pg_class c
		WHERE c.oid = pg_partition_root(s.relid) LIMIT 1), s.relname) AS name, n_live_tup AS live, n_dead_tup AS dead,
		pg_table_size(relid) AS heap, pg_indexes_size(relid) AS indexes FROM pg_stat_user_tables s) t
	GROUP BY name ORDER BY sum(heap) + sum(indexes) DESC LIMIT 12)
UNION ALL
SELECT format('database %s; checkpoints %s timed, %s requested; autovacuums %s', pg_size_pretty(pg_database_size(current_database())),
	checkpoints_timed, checkpoints_req, (SELECT sum(autovacuum_count) FROM pg_stat_user_tables)) FROM pg_stat_bgwriter`

func printSizes(s *site, when string) {
	if s.Database == "" {
		fmt.Println("sizes are not known: specify -database")
		return
	}
	text, err := psql(s.Database, sizes)
	if err != nil {
		text = err.Error()
	}
	fmt.Printf("\n%s\n%s\n\n", when, text)
}
