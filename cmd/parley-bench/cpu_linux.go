package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// postgresUsage returns the usage of a postmaster and all its children: live ones, and those that
// it has waited for.
func postgresUsage(postmaster int) usage {
	if postmaster == 0 {
		return usage{}
	}
	total, ok := stat(postmaster)
	if !ok {
		return usage{}
	}
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(postmaster) + "/task/*/children")
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			return usage{}
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				ticks, _ := stat(pid) // a child that ended meanwhile is in the postmaster's sum
				total += ticks
			}
		}
	}
	seconds := float64(total) * tick.Seconds()
	return usage{Seconds: seconds, Database: seconds, Known: true}
}

// stat returns a process's user and system time, and that of the children it waited for.
func stat(pid int) (ticks int64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may contain blanks
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return 0, false
	}
	for _, f := range fields[11:15] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return ticks, true
}
