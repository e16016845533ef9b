// Command nats does the work of the bench on an embedded NATS server with JetStream on disk: each
// stream of deltas is a subject, each reader an ordered consumer. It prints one line of JSON.
//
//	nats default|always flat STREAMS DELTAS
//	nats default|always paced STREAMS RATE SECONDS
//
// default leaves the sync interval at two minutes, so an acknowledged message can be lost with the
// machine. always writes each message to the disk before it is acknowledged.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// work is what each stream does.
type work struct {
	always          bool
	streams, deltas int
	every           time.Duration // 0: as fast as it goes
}

func main() {
	w, err := parse(os.Args[1:])
	if err == nil {
		err = w.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func parse(args []string) (w work, err error) {
	if len(args) < 4 {
		return w, errors.New("arguments are missing")
	}
	w.always = args[0] == "always"
	n := make([]int, len(args)-2)
	for i, a := range args[2:] {
		if n[i], err = strconv.Atoi(a); err != nil {
			return w, err
		}
	}
	w.streams, w.deltas = n[0], n[1]
	if args[1] == "paced" {
		w.every, w.deltas = time.Second/time.Duration(n[1]), n[1]*n[2]
	}
	return w, nil
}

func (w work) run() error {
	dir, err := os.MkdirTemp("/var/tmp", "bench-nats-") // not below /tmp, which is memory on many systems
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
		SyncAlways: w.always, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server does not start")
	}
	c, err := nats.Connect(s.ClientURL())
	if err != nil {
		return err
	}
	defer c.Close()
	js, err := c.JetStream(nats.PublishAsyncMaxPending(512 * w.streams))
	if err != nil {
		return err
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: "bench", Subjects: []string{"bench.*"}, Storage: nats.FileStorage}); err != nil {
		return err
	}
	return w.measure(js)
}

// measure starts all streams at once and checks what their readers receive.
func (w work) measure(js nats.JetStreamContext) error {
	errs := make([]error, 2*w.streams)
	waits := make([][]time.Duration, w.streams)
	var all sync.WaitGroup
	began := time.Now()
	for i := range w.streams {
		subject := fmt.Sprintf("bench.%d", i)
		all.Go(func() { waits[i], errs[2*i] = w.read(js, subject) })
		all.Go(func() { errs[2*i+1] = w.write(js, subject) })
	}
	all.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	merged := slices.Concat(waits...)
	slices.Sort(merged)
	figures := map[string]float64{"per_second": float64(len(merged)) / took.Seconds()}
	if w.every > 0 {
		at := func(q float64) float64 { return float64(merged[int(q*float64(len(merged)-1))].Microseconds()) / 1000 }
		figures["p50_ms"], figures["p99_ms"] = at(0.5), at(0.99)
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// write publishes the deltas of one stream. Up to 256 wait for their acknowledgement.
func (w work) write(js nats.JetStreamContext, subject string) error {
	began := time.Now()
	window := make(chan nats.PubAckFuture, 256)
	acked := make(chan error, 1)
	go func() {
		var first error
		for f := range window {
			select {
			case <-f.Ok():
			case err := <-f.Err():
				first = errors.Join(first, err)
			case <-time.After(2 * time.Minute):
				first = errors.Join(first, errors.New("no acknowledgement"))
			}
		}
		acked <- first
	}()
	for i := range w.deltas {
		time.Sleep(time.Until(began.Add(time.Duration(i) * w.every)))
		text := fmt.Sprintf("%d %d ", time.Now().UnixNano(), i)
		f, err := js.PublishAsync(subject, []byte(text+strings.Repeat(".", max(0, 32-len(text)))))
		if err != nil {
			close(window)
			return errors.Join(err, <-acked)
		}
		window <- f
	}
	close(window)
	return <-acked
}

// read receives the deltas of one stream: each once and in order.
func (w work) read(js nats.JetStreamContext, subject string) (waits []time.Duration, err error) {
	sub, err := js.SubscribeSync(subject, nats.OrderedConsumer())
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	for i := range w.deltas {
		m, err := sub.NextMsg(2 * time.Minute)
		if err != nil {
			return nil, fmt.Errorf("%s: delta %d: %w", subject, i, err)
		}
		var at int64
		var n int
		if _, err := fmt.Sscan(string(m.Data), &at, &n); err != nil || n != i {
			return nil, fmt.Errorf("%s: %q is not delta %d", subject, m.Data, i)
		}
		waits = append(waits, time.Since(time.Unix(0, at)))
	}
	if pending, _, err := sub.Pending(); err != nil || pending != 0 {
		return nil, fmt.Errorf("%s: more than %d deltas, %w", subject, w.deltas, err)
	}
	return waits, nil
}
