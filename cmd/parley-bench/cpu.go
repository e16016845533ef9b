package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is the processor time of a set of processes. Known is false if the system does not report
// it.
type usage struct {
	Seconds  float64
	Database float64 // PostgreSQL's part
	Known    bool
}

func (u usage) since(before usage) usage {
	return usage{u.Seconds - before.Seconds, u.Database - before.Database, u.Known && before.Known}
}

func (u usage) plus(other usage) usage {
	return usage{u.Seconds + other.Seconds, u.Database + other.Database, u.Known && other.Known}
}

// perMillion adds the processor time per million units to the figures.
func (u usage) perMillion(f Figures, units int) {
	if u.Known && units > 0 {
		f[CPU] = u.Seconds * 1e6 / float64(units)
		f[Database] = u.Database * 1e6 / float64(units)
	}
}

// postmasterPID returns the process id in a data directory on this machine, or 0.
func postmasterPID(dataDirectory string) int {
	if dataDirectory == "" {
		return 0
	}
	text, err := os.ReadFile(dataDirectory + "/postmaster.pid")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0
	}
	return pid
}

// tick is the unit of /proc/PID/stat, which is the same on every supported system.
const tick = 10 * time.Millisecond
