package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the control group of one command. The kernel counts the memory of all its processes:
// memory, shared memory, page tables, socket buffers, files in memory. It kills all of them
// together when that exceeds the limit. A nil cgroup limits nothing.
type cgroup struct {
	path string
	dir  *os.File
}

// createGroup makes the group of a command.
func (g *cgroups) createGroup(l Limits) (c *cgroup, err error) {
	name := strconv.Itoa(os.Getpid()) + "-" + rand.Text()
	c = &cgroup{path: filepath.Join(g.commands, name)}
	if err := os.Mkdir(c.path, 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(c.path)
		}
	}()
	// Bubblewrap's own processes and the threads of the second stage count, too.
	const own = 32
	for _, limit := range []struct{ file, value string }{
		{"memory.max", strconv.FormatInt(l.Memory, 10)},
		{"memory.oom.group", "1"},
		{"pids.max", strconv.Itoa(l.Processes + own)},
	} {
		if err := c.writeSetting(limit.file, limit.value); err != nil {
			return nil, fmt.Errorf("limit a control group: %w", err)
		}
	}
	if err := c.writeSetting("memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap
		return nil, fmt.Errorf("limit a control group: %w", err)
	}
	if c.dir, err = os.Open(c.path); err != nil {
		return nil, err
	}
	return c, nil
}

// writeSetting sets a value. The file must exist: the kernel makes it.
func (c *cgroup) writeSetting(file, value string) error {
	return writeValue(filepath.Join(c.path, file), value)
}

// killGroup kills all processes of the group. It needs a kernel since 5.14.
func (c *cgroup) killGroup() {
	if c != nil {
		_ = c.writeSetting("cgroup.kill", "1")
	}
}

// outOfMemory reports whether the kernel killed the group because of its memory.
func (c *cgroup) outOfMemory() bool {
	if c == nil {
		return false
	}
	events, _ := os.ReadFile(filepath.Join(c.path, "memory.events"))
	for line := range strings.Lines(string(events)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			return n != "0"
		}
	}
	return false
}

// removeWithin is the time that the kernel may need to release ended processes.
const removeWithin = 5 * time.Second

// removeGroup removes the group after its processes have ended.
func (c *cgroup) removeGroup() error {
	if c == nil {
		return nil
	}
	defer c.dir.Close()
	for deadline := time.Now().Add(removeWithin); ; time.Sleep(2 * time.Millisecond) {
		err := os.Remove(c.path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove a control group: %w", err)
		}
		c.killGroup()
	}
}

func writeValue(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
