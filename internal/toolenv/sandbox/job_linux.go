package sandbox

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

// newJob returns the second stage's job for a command.
func newJob(c Command, l Limits) inside.Job {
	j := inside.Job{Argv: c.Argv, Env: commandEnvironment(c)}
	for _, p := range listPorts(c) {
		j.Sockets = append(j.Sockets, p.socketType())
	}
	limit := func(resource int, n int64) {
		j.Limits = append(j.Limits, inside.Limit{Resource: resource, Soft: uint64(n), Hard: uint64(n)})
	}
	seconds := int64((l.CPU + time.Second - 1) / time.Second)
	// The first signal names the limit, the second cannot be ignored.
	j.Limits = append(j.Limits, inside.Limit{Resource: unix.RLIMIT_CPU, Soft: uint64(seconds), Hard: uint64(seconds + 1)})
	limit(unix.RLIMIT_NPROC, int64(l.Processes))
	limit(unix.RLIMIT_FSIZE, l.File)
	limit(unix.RLIMIT_NOFILE, 1024)
	limit(unix.RLIMIT_CORE, 0)
	limit(unix.RLIMIT_MSGQUEUE, 0)
	limit(unix.RLIMIT_MEMLOCK, 64<<10)
	limit(unix.RLIMIT_DATA, l.Memory)
	return j
}
