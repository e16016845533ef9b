package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/turn"
)

// serverName is argument zero of a server of the bench: this binary again, so that the processor
// time and the memory of server and client are measured separately.
const serverName = "parley-bench-server"

func init() {
	if len(os.Args) == 1 && os.Args[0] == serverName {
		os.Exit(serverMain())
	}
}

// task is what a server reads from its parent, as one line.
type task struct {
	Mode    string
	DSN     string
	HTTP    bool
	Workers int
	Key     string // master key of the vault
	Profile string // file for a processor profile; "" for none

	Allow []string // rules of egress

	Volatile bool // PostgreSQL is not durable, which the service must accept
}

// serverLine is one line that a server writes to its parent.
type serverLine struct {
	URL   string `json:",omitempty"` // it serves
	Error string `json:",omitempty"` // why it does not serve
	CPU   usage
	Bytes int64 // RAM of the process
	Peak  int64 // the most that were; 0 if the system does not report it
}

// serverMain serves until its input ends, which happens when the parent ends. Every further line of
// input requests the figures.
func serverMain() int {
	in := bufio.NewScanner(os.Stdin)
	var t task
	if !in.Scan() || json.Unmarshal(in.Bytes(), &t) != nil {
		return 2
	}
	if t.Profile != "" {
		file, err := os.Create(t.Profile)
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		defer pprof.StopCPUProfile()
	}
	var mu sync.Mutex
	tell := func(line serverLine) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(line)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- t.serve(ctx, func(url string) { tell(serverLine{URL: url}) }) }()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	for {
		select {
		case err := <-served:
			tell(serverLine{Error: fmt.Sprint(err)})
			return 1
		case _, ok := <-lines:
			if !ok {
				t.heap()
				stop()
				if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
					fmt.Fprintln(os.Stderr, err)
					return 1
				}
				return 0
			}
			tell(serverLine{CPU: ownUsage(), Bytes: resident(), Peak: residentPeak()})
		}
	}
}

// heap writes the live objects and all allocations, beside the processor profile.
func (t task) heap() {
	if t.Profile == "" {
		return
	}
	if file, err := os.Create(t.Profile + ".heap"); err == nil {
		_ = pprof.Lookup("heap").WriteTo(file, 0)
		file.Close()
	}
}

func (t task) serve(ctx context.Context, ready func(url string)) error {
	switch t.Mode {
	case Raw:
		return serveRaw(ctx, ready)
	case Naive:
		return serveNaive(ctx, t.DSN, t.Workers, ready)
	}
	cfg, err := app.Load(app.Sources{})
	if err != nil {
		return err
	}
	cfg.DatabaseURL, cfg.Listen, cfg.Model = app.Secret(t.DSN), "127.0.0.1:0", "builtin/guide"
	cfg.HTTP, cfg.Workers = t.HTTP, t.Workers
	cfg.ModelCalls = max(cfg.ModelCalls, t.Workers)
	if t.Volatile {
		cfg.Durability = "off"
	}
	cfg.EgressAllow = t.Allow
	cfg.VaultKey = app.Secret(t.Key)
	opt := app.Options{Config: cfg, Ready: ready,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if t.Mode == Default {
		opt.Turns = func(c *turn.Config) { c.FetchCooldown, c.FetchPoll = riverCooldown, riverPoll }
	}
	return app.Serve(ctx, opt)
}

// River's own defaults.
const (
	riverCooldown = 100 * time.Millisecond
	riverPoll     = time.Second
)
