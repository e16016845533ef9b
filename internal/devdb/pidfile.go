package devdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidfile is the file that a postmaster writes into its data directory.
type pidfile struct {
	pid     int
	port    int
	sockets string
	status  string // "starting", "ready", "standby", "stopping"
}

func pidfilePath(data string) string { return filepath.Join(data, "postmaster.pid") }

// readPidfile returns fs.ErrNotExist if the file does not exist. For a file that is still being
// written it returns zero fields, not an error.
func readPidfile(data string) (pidfile, error) {
	text, err := os.ReadFile(pidfilePath(data))
	if err != nil {
		return pidfile{}, err
	}
	line := strings.Split(string(text), "\n")
	line = append(line, make([]string, 8)...)
	var p pidfile
	if p.pid, err = strconv.Atoi(strings.TrimSpace(line[0])); err != nil {
		return p, fmt.Errorf("%s: %w", pidfilePath(data), err)
	}
	p.pid = max(p.pid, -p.pid) // negative in single-user mode
	p.port, _ = strconv.Atoi(strings.TrimSpace(line[3]))
	p.sockets = strings.TrimSpace(line[4])
	p.status = strings.TrimSpace(line[7])
	return p, nil
}

// isReady reports whether PostgreSQL accepts connections; a standby accepts those that only read.
func (p pidfile) isReady() bool {
	return (p.status == "ready" || p.status == "standby") && p.sockets != ""
}
