package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// seconds returns the CPU time of one process, without its children.
func seconds(pid int) (float64, error) {
	f, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return f.own, nil
}

// secondsOfTree returns the CPU time of a process and of all its children, including ended ones.
func secondsOfTree(pid int) (float64, error) {
	f, err := stat(pid)
	if err != nil {
		return 0, err
	}
	total := f.own + f.ended
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range all {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if f, err := stat(child); err == nil && f.parent == pid {
			total += f.own
		}
	}
	return total, nil
}

type times struct {
	parent     int
	own, ended float64
}

// stat reads /proc/PID/stat, whose unit is 10 ms on every supported system.
func stat(pid int) (t times, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, err
	}
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	if len(f) < 15 {
		return t, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	n := func(i int) float64 { v, _ := strconv.Atoi(f[i]); return float64(v) / 100 }
	t.parent, _ = strconv.Atoi(f[1])
	t.own, t.ended = n(11)+n(12), n(13)+n(14)
	return t, nil
}

// watchMemory samples the memory of a process twice a second until peak is called.
func watchMemory(pid int) (peak func() int64) {
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var top int64
		for {
			top = max(top, resident(pid))
			select {
			case <-stop:
				most <- top
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(stop); return <-most }
}

func resident(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

func postmasterOf(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, ".parley", "pg", "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

// psql queries PostgreSQL; its client is the only requirement besides the binary.
func psql(database, sql string) (string, error) {
	cmd := exec.Command("psql", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

func number64(database, sql string) (int64, error) {
	text, err := psql(database, sql)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// describe lists the settings of PostgreSQL that affect its speed, and those that differ from the
// defaults.
func describe(database string) (string, error) {
	return psql(database,
		`SELECT 'PostgreSQL ' || current_setting('server_version') || ': ' || string_agg(name || ' ' || current_setting(name), ', ' ORDER BY name)
		FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'max_wal_size')
		OR name IN ('max_connections', 'shared_buffers', 'wal_level', 'checkpoint_timeout')`)
}
