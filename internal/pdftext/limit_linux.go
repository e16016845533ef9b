package pdftext

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitProcess limits this process. The limit of the address space is above what the runtime has
// reserved, which is more than it uses.
func limitProcess(seconds string) error {
	cpu, err := strconv.ParseUint(seconds, 10, 32)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Fscan(bytes.NewReader(raw), &pages); err != nil {
		return err
	}
	memory := pages*uint64(os.Getpagesize()) + maxMemory
	for resource, limit := range map[int]uint64{unix.RLIMIT_AS: memory, unix.RLIMIT_CPU: cpu, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_NOFILE: 16} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	return nil
}

// isolate starts a command in namespaces of its own, without a network.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC}
}
