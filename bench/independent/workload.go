package main

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// site is the server under load.
type site struct {
	URL, Key, Workspace string
	Database            string // "" if unknown
}

// workload is a kind of load on a server.
type workload struct {
	args    []string
	run     func(s *site) *result
	running int           // turns that run at once; 0: as many as the defaults allow
	count   bool          // a comparison counts its statements and commits
	quiet   time.Duration // wait before the load, to measure the server at rest
}

func (w workload) name() string { return strings.Join(w.args, " ") }

// newWorkload parses the name of a workload and its flags.
func newWorkload(args []string) (workload, error) {
	all := map[string]func(*flag.FlagSet, []string) workload{
		"turns": turns, "burst": burst, "offered": offered, "paced": paced, "flat": flat, "idle": idle, "soak": soak,
	}
	start := all[args[0]]
	if start == nil {
		return workload{}, fmt.Errorf("%q is not a workload; use turns, offered, burst, paced, flat, idle or soak", args[0])
	}
	w := start(flag.NewFlagSet(args[0], flag.ExitOnError), args[1:])
	w.args = args
	return w, nil
}

// hello is the short message, to which the offline model always gives the same answer.
const hello = "hello"

// turns lets each client send one short message after the other, each in a new session.
func turns(f *flag.FlagSet, args []string) workload {
	clients := f.Int("clients", 64, "clients at once")
	last := f.Duration("for", 20*time.Second, "how long")
	f.Parse(args)
	return workload{count: true, run: func(s *site) *result {
		return collect(func(r *result, all *sync.WaitGroup) {
			for range *clients {
				all.Go(func() {
					for time.Since(r.began) < *last {
						r.send(s, hello, nil)
					}
				})
			}
		})
	}}
}

// offered sends short messages at a steady rate. A slow server does not slow the clients.
func offered(f *flag.FlagSet, args []string) workload {
	rate := f.Float64("rate", 200, "messages a second")
	last := f.Duration("for", 20*time.Second, "how long")
	f.Parse(args)
	return workload{run: func(s *site) *result {
		return collect(func(r *result, all *sync.WaitGroup) { r.offer(s, *rate, *last, all) })
	}}
}

func (r *result) offer(s *site, rate float64, last time.Duration, all *sync.WaitGroup) {
	for i := range int(last.Seconds() * rate) {
		time.Sleep(time.Until(r.began.Add(time.Duration(float64(i) / rate * 1e9))))
		all.Go(func() { r.send(s, hello, nil) })
	}
}

// burst sends many messages at once.
func burst(f *flag.FlagSet, args []string) workload {
	messages := f.Int("messages", 1000, "messages at once")
	f.Parse(args)
	return workload{run: func(s *site) *result {
		return collect(func(r *result, all *sync.WaitGroup) {
			for range *messages {
				all.Go(func() { r.send(s, hello, nil) })
			}
		})
	}}
}

// paced lets many turns write deltas at a steady rate.
func paced(f *flag.FlagSet, args []string) workload {
	streams := f.Int("streams", 100, "turns at once")
	rate := f.Int("rate", 20, "deltas a second in each")
	last := f.Duration("for", 20*time.Second, "how long each turn writes")
	ramp := f.Duration("ramp", 0, "time over which the turns start; its deltas count")
	f.Parse(args)
	p := newPace(int(last.Seconds()*float64(*rate)), *rate)
	w := streaming(*streams, p, *ramp)
	w.count = true
	return w
}

// flat lets many turns write deltas as fast as they are read.
func flat(f *flag.FlagSet, args []string) workload {
	streams := f.Int("streams", 100, "turns at once")
	deltas := f.Int("deltas", 3000, "deltas of each")
	f.Parse(args)
	return streaming(*streams, newPace(*deltas, 0), 0)
}

func streaming(streams int, p *pace, ramp time.Duration) workload {
	return workload{running: streams, run: func(s *site) *result {
		return collect(func(r *result, all *sync.WaitGroup) {
			for i := range streams {
				all.Go(func() {
					time.Sleep(ramp * time.Duration(i) / time.Duration(streams))
					r.send(s, p.command(), p)
				})
			}
		})
	}}
}

// idle sends nothing.
func idle(f *flag.FlagSet, args []string) workload {
	last := f.Duration("for", 30*time.Second, "how long")
	f.Parse(args)
	return workload{quiet: 5 * time.Second, run: func(*site) *result {
		return collect(func(*result, *sync.WaitGroup) { time.Sleep(*last) })
	}}
}

// collect runs a load to its end.
func collect(load func(*result, *sync.WaitGroup)) *result {
	r := &result{began: time.Now()}
	var all sync.WaitGroup
	load(r, &all)
	all.Wait()
	r.took = time.Since(r.began)
	client.CloseIdleConnections()
	return r
}

// warm sends messages one after the other and drops their figures: the server opens its connections
// to the database. It is only for servers that this program has just started.
func warm(s *site) error {
	r := &result{began: time.Now()}
	for range 20 {
		r.send(s, hello, nil)
	}
	return r.err()
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}
