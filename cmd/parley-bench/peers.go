package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// peer is another server that runs the same work, driven by a program of its own. The program
// checks its streams and prints its figures.
type peer struct {
	Name   string   `json:"name"`
	Run    []string `json:"run"`    // program and first arguments, in the peer's directory
	Memory bool     `json:"memory"` // it keeps streams in memory only
	Flat   int      `json:"flat"`   // deltas of each stream in flat; fewer for servers that would need minutes
	Paced  int      `json:"paced"`  // streams of 20 deltas a second that it keeps up with
	Least  float64  `json:"least"`  // target of the service's rate to the peer's; 0 for none

	dir string
}

// peerTime bounds one run of a peer.
const peerTime = 5 * time.Minute

// loadPeers reads the peers below a directory, and returns the names of those that are not
// installed.
func loadPeers(dir string) (peers []peer, missing []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "peer.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no peers", dir)
	}
	for _, file := range files {
		var list []peer
		text, readErr := os.ReadFile(file)
		if err := errors.Join(readErr, json.Unmarshal(text, &list)); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", file, err)
		}
		at := filepath.Dir(file)
		_, absent := os.Stat(filepath.Join(at, "installed"))
		for _, p := range list {
			if p.dir = at; absent != nil {
				missing = append(missing, p.Name)
				continue
			}
			peers = append(peers, p)
		}
	}
	return peers, missing, err
}

// label returns the peer's mode in the report.
func (p peer) label() string {
	if p.Memory {
		return p.Name + " (memory only)"
	}
	return p.Name
}

// withPeers adds the peers to the modes of a scenario.
func (s scenario) withPeers(peers []peer) scenario {
	if s.peerWork == nil {
		return s
	}
	by := make(map[string]peer)
	metrics := []ratio{{What: "deltas: service to ", Metric: Rate}}
	if s.peerWork[0] == "paced" {
		metrics = []ratio{{What: "p50: service to ", Metric: P50}, {What: "p99: service to ", Metric: P99}}
	}
	for _, p := range peers {
		if s.peerWork[0] == "paced" && s.streams > p.Paced {
			continue
		}
		by[p.label()] = p
		s.Modes = append(s.Modes[:len(s.Modes):len(s.Modes)], p.label())
		for _, r := range metrics {
			r.What, r.Of, r.To = r.What+p.label(), Service, p.label()
			if r.Metric == Rate {
				r.Least = p.Least
			}
			s.ratios = append(s.ratios[:len(s.ratios):len(s.ratios)], r)
		}
	}
	own, work := s.run, s.peerWork
	s.run = func(ctx context.Context, b *bench, mode string) (Figures, error) {
		if p, ok := by[mode]; ok {
			return p.measure(ctx, work)
		}
		return own(ctx, b, mode)
	}
	return s
}

// measure runs the peer's program once.
func (p peer) measure(ctx context.Context, work []string) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTime)
	defer cancel()
	args := append(p.Run[1:len(p.Run):len(p.Run)], work...)
	if work[0] == "flat" {
		if n, err := strconv.Atoi(work[2]); err == nil {
			args[len(args)-1] = strconv.Itoa(min(n, p.Flat))
		}
	}
	cmd := exec.CommandContext(ctx, p.Run[0], args...)
	cmd.Dir = p.dir
	cmd.WaitDelay = 5 * time.Second
	var stderr tailBuffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w\n%s", p.Name, err, &stderr)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var f Figures
	if err := json.Unmarshal(lines[len(lines)-1], &f); err != nil {
		return nil, fmt.Errorf("read the figures of %s: %w", p.Name, err)
	}
	return f, nil
}
