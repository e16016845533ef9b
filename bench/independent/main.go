// Command independent puts load on a running server over HTTP. It shares no code with the project:
// its SSE reader, its clock and its checks are its own.
//
//	independent -url http://127.0.0.1:8080 -key prl_… -workspace demo turns -clients 64 -for 20s
//	independent … burst -messages 1000
//	independent … paced -streams 100 -rate 20 -for 20s
//
// The clock of a figure starts before the request is sent, and no turn is left out: neither the
// first ones nor the slow ones. Every stream is checked: the text is whole, ids rise, done comes
// once and last. The exit status is 1 if any check fails.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	base      = flag.String("url", os.Getenv("PARLEY_URL"), "address of the server")
	key       = flag.String("key", os.Getenv("PARLEY_API_KEY"), "API key")
	workspace = flag.String("workspace", "demo", "workspace")
)

func main() {
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "name a workload: turns, burst or paced")
		os.Exit(2)
	}
	work := map[string]func([]string) *result{"turns": turns, "burst": burst, "paced": paced}[flag.Arg(0)]
	if work == nil {
		fmt.Fprintf(os.Stderr, "%q is not a workload. Use turns, burst or paced.\n", flag.Arg(0))
		os.Exit(2)
	}
	r := work(flag.Args()[1:])
	r.print()
	if len(r.failed) > 0 {
		os.Exit(1)
	}
}

// result collects the streams of a run.
type result struct {
	mu     sync.Mutex
	turns  int
	first  []time.Duration // request sent to first text received
	whole  []time.Duration // request sent to done received
	late   []time.Duration // of each paced delta: received minus the moment its pace allows at the earliest
	failed []string
	took   time.Duration
}

func (r *result) add(s *stream, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = append(r.failed, err.Error())
		return
	}
	r.turns++
	r.first = append(r.first, s.first)
	r.whole = append(r.whole, s.whole)
	r.late = append(r.late, s.late()...)
}

func (r *result) print() {
	fmt.Printf("turns %d in %.1f s: %.1f a second; failed %d\n", r.turns, r.took.Seconds(), float64(r.turns)/r.took.Seconds(), len(r.failed))
	show := func(name string, d []time.Duration) {
		if len(d) == 0 {
			return
		}
		slices.Sort(d)
		at := func(q float64) float64 { return float64(d[int(q*float64(len(d)-1))].Microseconds()) / 1000 }
		fmt.Printf("%-12s p50 %8.1f ms   p99 %8.1f ms   max %8.1f ms   (%d)\n", name, at(0.5), at(0.99), at(1), len(d))
	}
	show("first text", r.first)
	show("done", r.whole)
	show("delta late", r.late)
	for _, f := range r.failed[:min(5, len(r.failed))] {
		fmt.Println("failed:", f)
	}
}

// turns has each client send one short message after the other, each in a new session.
func turns(args []string) *result {
	f := flag.NewFlagSet("turns", flag.ExitOnError)
	clients := f.Int("clients", 64, "clients at once")
	last := f.Duration("for", 20*time.Second, "how long")
	f.Parse(args)
	r := &result{}
	began := time.Now()
	var all sync.WaitGroup
	for range *clients {
		all.Go(func() {
			for time.Since(began) < *last {
				r.add(send("hello", nil))
			}
		})
	}
	all.Wait()
	r.took = time.Since(began)
	return r
}

// burst sends many messages at the same moment.
func burst(args []string) *result {
	f := flag.NewFlagSet("burst", flag.ExitOnError)
	messages := f.Int("messages", 1000, "messages at once")
	f.Parse(args)
	r := &result{}
	began := time.Now()
	var all sync.WaitGroup
	for range *messages {
		all.Go(func() { r.add(send("hello", nil)) })
	}
	all.Wait()
	r.took = time.Since(began)
	return r
}

// paced has many turns write deltas at a steady rate.
func paced(args []string) *result {
	f := flag.NewFlagSet("paced", flag.ExitOnError)
	streams := f.Int("streams", 100, "turns at once")
	rate := f.Int("rate", 20, "deltas a second in each")
	last := f.Duration("for", 20*time.Second, "how long")
	f.Parse(args)
	n := int(last.Seconds() * float64(*rate))
	r := &result{}
	began := time.Now()
	var all sync.WaitGroup
	for range *streams {
		all.Go(func() {
			r.add(send(fmt.Sprintf("@text %d deltas of 12 bytes at %d/s", n, *rate), &pace{n, time.Second / time.Duration(*rate)}))
		})
	}
	all.Wait()
	r.took = time.Since(began)
	return r
}

// pace is what a paced turn writes.
type pace struct {
	deltas int
	every  time.Duration
}

// stream is what one turn sent.
type stream struct {
	pace         *pace
	first, whole time.Duration
	at           []time.Time // when each byte range of 12 bytes was complete
}

// late compares the deltas with the pace that fits them best: the earliest one sets the clock, so
// the figure is a delay beyond the best case of the same stream.
func (s *stream) late() []time.Duration {
	if s.pace == nil {
		return nil
	}
	start := s.at[0]
	for i, at := range s.at {
		if begun := at.Add(-time.Duration(i) * s.pace.every); begun.Before(start) {
			start = begun
		}
	}
	late := make([]time.Duration, len(s.at))
	for i, at := range s.at {
		late[i] = at.Sub(start.Add(time.Duration(i) * s.pace.every))
	}
	return late
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, MaxConnsPerHost: 0}}

// send sends a message and reads its stream to the end.
func send(command string, p *pace) (*stream, error) {
	body, _ := json.Marshal(map[string]any{"command": command, "stream": true})
	req, err := http.NewRequest(http.MethodPost, *base+"/api/v1/workspaces/"+*workspace+"/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+*key)
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return nil, fmt.Errorf("%s: %s", res.Status, text)
	}
	return read(res.Body, began, p)
}

// read reads frames until the stream ends and checks them.
func read(r io.Reader, began time.Time, p *pace) (*stream, error) {
	s := &stream{pace: p}
	var event, data string
	var last, bytes int64
	done := 0
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 8<<20)
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case field == "event":
			event = value
		case field == "data":
			data = value
		case field == "id":
			id, err := strconv.ParseInt(value, 10, 64)
			if err != nil || id <= last {
				return nil, fmt.Errorf("id %q follows %d", value, last)
			}
			last = id
		case line == "" && event != "":
			if done > 0 {
				return nil, fmt.Errorf("%s follows done", event)
			}
			switch event {
			case "done":
				done++
				s.whole = time.Since(began)
			case "error":
				return nil, fmt.Errorf("error: %s", data)
			case "text":
				if s.first == 0 {
					s.first = time.Since(began)
				}
				var text struct{ Text string }
				if err := json.Unmarshal([]byte(data), &text); err != nil {
					return nil, err
				}
				bytes += int64(len(text.Text))
				for p != nil && int64(len(s.at)+1)*12 <= bytes {
					s.at = append(s.at, time.Now())
				}
			}
			event, data = "", ""
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, lines.Err()
	case done != 1:
		return nil, fmt.Errorf("the stream ended without done")
	case bytes == 0:
		return nil, fmt.Errorf("the answer has no text")
	case p != nil && len(s.at) != p.deltas:
		return nil, fmt.Errorf("%d deltas of %d", len(s.at), p.deltas)
	}
	return s, nil
}
