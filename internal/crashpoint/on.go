//go:build faultpoints

// Package crashpoint names the moments at which a process may die or stall without a promise being
// broken. The chaos harness kills a process at each of them. A point does nothing unless the program
// is built with the tag faultpoints.
package crashpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// fault is the environment's FAULT, as point:nth:action. The action is kill, or a duration for which
// the nth and every later passage stalls.
var fault = parseFault(os.Getenv("FAULT"))

type chosen struct {
	point  string
	nth    int64
	stall  time.Duration // 0: kill the process
	passed atomic.Int64
}

func parseFault(text string) *chosen {
	part := strings.Split(text, ":")
	if len(part) != 3 {
		return &chosen{}
	}
	c := &chosen{point: part[0]}
	var err error
	if c.nth, err = strconv.ParseInt(part[1], 10, 64); err != nil {
		panic("FAULT: " + err.Error())
	}
	if part[2] != "kill" {
		if c.stall, err = time.ParseDuration(part[2]); err != nil {
			panic("FAULT: " + err.Error())
		}
	}
	return c
}

// Hit kills the process, or stalls it, if FAULT names the point.
func Hit(point string) {
	if point != fault.point {
		return
	}
	n := fault.passed.Add(1)
	switch {
	case n < fault.nth:
	case fault.stall > 0:
		time.Sleep(fault.stall)
	case n == fault.nth:
		fmt.Fprintln(os.Stderr, "crash point", point)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
