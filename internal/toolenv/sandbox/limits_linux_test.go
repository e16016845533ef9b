package sandbox_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

const mib = 1 << 20

// TestLimitsKill runs attacks that end by a limit, each with its reason, and nothing of them is
// left.
func TestLimitsKill(t *testing.T) {
	t.Parallel()
	slow.Test(t, "uses up each limit")
	s := open(t, sandbox.Config{})
	for name, c := range map[string]struct {
		argv   []string
		limits sandbox.Limits
		killed string
		exit   int
	}{
		"time":           {bash("sleep 1000"), sandbox.Limits{Time: 500 * time.Millisecond}, "killed after 0.5 s", 137},
		"fork bomb":      {bash(":(){ :|:& };: ; sleep 1000"), sandbox.Limits{Time: time.Second, Processes: 40}, "killed after 1 s", 137},
		"endless output": {[]string{"yes"}, sandbox.Limits{Output: 3 * mib}, "killed: its output passed 3 MiB", 137},
		"processor": {[]string{"bash", "-c", "while :; do :; done"}, sandbox.Limits{CPU: time.Second},
			"killed: a process used the processor for more than 1 s", 152},
		"a large file":   {[]string{"head", "-c", "3M", "/dev/zero"}, sandbox.Limits{File: mib}, "", 0},
		"a growing file": {bash("exec head -c 3M /dev/zero > file"), sandbox.Limits{File: mib}, "killed: a file grew past 1 MiB", 153},
		"memory of many": {bash("for i in 1 2 3 4; do (head -c 300M /dev/zero; sleep 1000) | tail & done; wait"),
			sandbox.Limits{Memory: 768 * mib}, "killed: it used more than 768 MiB of memory", 137},
		"shared memory": {with("map", "shared", "1000"), sandbox.Limits{Memory: 768 * mib},
			"killed: it used more than 768 MiB of memory", 137},
		"socket buffers": {bash("for i in 1 2 3 4 5 6; do /run/init attack hoard sockets & done; wait"),
			sandbox.Limits{Memory: 768 * mib}, "killed: it used more than 768 MiB of memory", 137},
		"unmapped memory": {with("hoard", "shared"), sandbox.Limits{Memory: 768 * mib}, "killed: it used more than 768 MiB of memory", 137},
		"page tables":     {with("hoard", "tables"), sandbox.Limits{Memory: 768 * mib}, "killed: it used more than 768 MiB of memory", 137},
		"open files": {bash("for i in $(seq 6); do exec {f}> $i; head -c 5M /dev/zero >&$f; rm $i; done; sleep 1000"),
			sandbox.Limits{Folder: 20 * mib}, "killed: its files passed 20 MiB in all", 137},
		"mapped files": {with("hoard", "files"), sandbox.Limits{Folder: 20 * mib}, "killed: its files passed 20 MiB in all", 137},
		"the folder": {bash("for i in $(seq 1000); do head -c 1M /dev/zero > $i; done; sleep 1000"), sandbox.Limits{Folder: 20 * mib},
			"killed: its files passed 20 MiB in all", 137},
		"many files": {with("names", "/workspace", "400"), sandbox.Limits{Files: 300}, "killed: it has more than 300 files", 137},
		"many directories": {bash("mkdir -p {a,b,c,d,e}/{1,2,3,4,5}/{x,y,z,v,w}; sleep 1000"), sandbox.Limits{Files: 100},
			"killed: it has more than 100 files", 137},
		"many levels":      {with("deep", "129", "stay"), sandbox.Limits{}, "killed: its folders are more than 128 deep", 137},
		"files in memory":  {with("names", "/tmp", "400"), sandbox.Limits{Files: 300}, "killed: it has more than 300 files in /tmp", 137},
		"and more of them": {with("names", "/dev/shm", "400"), sandbox.Limits{Files: 300}, "killed: it has more than 300 files in /dev/shm", 137},
		"a full disk": {bash("for i in $(seq 16); do head -c 50M /dev/zero > $i; done; sleep 1000"), almost(t, 100*mib),
			"killed: the server's disk has less than", 137},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark()
			c.limits.Time = cmp.Or(c.limits.Time, 2*time.Minute) // a busy machine reaches the limit late
			r, out := run(t, s, sandbox.Command{Argv: c.argv, Env: []string{mark}, Limits: c.limits})
			if !strings.HasPrefix(r.Killed, c.killed) || c.killed == "" && r.Killed != "" || r.Exit != c.exit {
				t.Errorf("%+v, want exit code %d, %q; its output ends in %q", r, c.exit, c.killed, last(out))
			}
			if name == "endless output" && len(out) != 3*mib {
				t.Errorf("%d bytes arrived", len(out))
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// almost returns a limit that leaves n bytes of the free space on the disk.
func almost(t *testing.T, n int64) sandbox.Limits {
	var stat unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &stat); err != nil {
		t.Fatal(err)
	}
	return sandbox.Limits{Folder: int64(stat.Bavail)*stat.Bsize - n}
}

func last(s string) string { return s[max(0, len(s)-300):] }

// TestLimitsRefuse runs attacks that the kernel answers with an error.
func TestLimitsRefuse(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{Limits: sandbox.Limits{Memory: 768 * mib, Temp: 2 * mib, Processes: 40}})
	for name, c := range map[string]struct {
		argv []string
		want error
	}{
		"memory":        {with("map", "private", "1024"), unix.ENOMEM},
		"processes":     {with("spawn", "100"), unix.EAGAIN},
		"/tmp":          {bash("head -c 3M /dev/zero > /tmp/file"), unix.ENOSPC},
		"/dev/shm":      {bash("head -c 3M /dev/zero > /dev/shm/file"), unix.ENOSPC},
		"higher limits": {bash("ulimit -f unlimited"), unix.EPERM},
		"locked memory": {with("map", "locked", "1"), unix.EAGAIN},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, out := run(t, s, sandbox.Command{Argv: c.argv})
			if r.Exit == 0 || !strings.Contains(strings.ToLower(out), c.want.Error()) {
				t.Errorf("%+v, %s; want: %v", r, last(out), c.want)
			}
		})
	}
}

// tryMap allocates memory and keeps it.
func tryMap(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	flags := map[string]int{
		"private": unix.MAP_PRIVATE, "shared": unix.MAP_SHARED, "locked": unix.MAP_PRIVATE | unix.MAP_LOCKED,
	}[args[0]]
	memory, err := unix.Mmap(-1, 0, n*mib, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	select {}
}

// makeNames makes empty files, and keeps running.
func makeNames(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(args[0], strconv.Itoa(i)), nil, 0o644); err != nil {
			return err
		}
	}
	time.Sleep(time.Hour)
	return nil
}

// spawn starts processes until it fails.
func spawn(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{}); err != nil {
			if errors.Is(err, syscall.EAGAIN) {
				return fmt.Errorf("after %d: %w", i, syscall.EAGAIN)
			}
			return err
		}
	}
	return nil
}
