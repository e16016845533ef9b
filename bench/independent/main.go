// Command independent puts load on a running server over HTTP. It shares no code with the project:
// its SSE reader, its clock and its checks are its own.
//
//	independent turns -clients 64 -for 20s          against -url with -key, or PARLEY_URL and PARLEY_API_KEY
//	independent with BINARY paced -streams 1000     starts BINARY serve --dev, then the same
//	independent compare OLD NEW                     both binaries in turns, as a table
//
// The clock of a figure starts before the request is sent, and no turn is left out: neither the
// first ones nor the slow ones. Every stream is checked: each delta arrives once and in order, ids
// rise, done comes once and last. The exit status is 1 if any check fails.
package main

import (
	"flag"
	"fmt"
	"os"
)

const usage = `usage: independent [-url URL] [-key KEY] [-workspace NAME] WORKLOAD [flags]
       independent with BINARY WORKLOAD [flags]
       independent compare [flags] OLD NEW

workloads; each has -help:
  turns    clients send one short message after the other
  offered  short messages at a steady rate, whether or not earlier ones have ended
  burst    short messages at one moment
  paced    turns that write deltas at a steady rate
  flat     turns that write deltas as fast as they are read
  idle     no load: the cost of the server alone
  soak     offered and paced together, with figures for each minute`

func main() {
	var s site
	flag.StringVar(&s.URL, "url", os.Getenv("PARLEY_URL"), "address of the server")
	flag.StringVar(&s.Key, "key", os.Getenv("PARLEY_API_KEY"), "API key")
	flag.StringVar(&s.Workspace, "workspace", "demo", "workspace")
	flag.StringVar(&s.Database, "database", os.Getenv("PARLEY_DATABASE_URL"),
		"PostgreSQL of the server, for the sizes that soak prints; needs psql")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, usage); flag.PrintDefaults() }
	flag.Parse()
	if err := run(s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "independent:", err)
		os.Exit(1)
	}
}

func run(s site, args []string) error {
	switch {
	case len(args) == 0:
		flag.Usage()
		os.Exit(2)
	case args[0] == "compare":
		return compare(args[1:])
	case args[0] == "with":
		return runWith(args[1:])
	}
	w, err := newWorkload(args)
	if err != nil {
		return err
	}
	r := w.run(&s)
	r.print(os.Stdout)
	return r.err()
}

// runWith runs one workload on a server of its own.
func runWith(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("specify a binary and a workload")
	}
	w, err := newWorkload(args[1:])
	if err != nil {
		return err
	}
	h, err := newHost(args[0])
	if err != nil {
		return err
	}
	defer h.remove()
	m, err := h.measure(w, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println(h.settings)
	m.result.print(os.Stdout)
	for _, row := range rows {
		if w.args[0] == "soak" { // its lines have the figures; a sum over two kinds of turns is meaningless
			break
		}
		if v, ok := row.value(m); ok {
			fmt.Printf("%-34s %s\n", row.name, number(v))
		}
	}
	return m.result.err()
}
