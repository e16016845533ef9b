//go:build unix

package devdb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// orphan finds a postmaster that runs without a guard. One that is stopping is
// waited for. It is called when no guard can be at work.
func (p place) orphan(ctx context.Context) (pid int, err error) {
	err = until(ctx, func() (bool, error) {
		at, err := readPidfile(p.data)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		if !alive(at.pid) {
			// PostgreSQL replaces the file itself, after it made sure that no
			// backend of the old server is left.
			return true, nil
		}
		if !isPostmaster(at.pid, p.data) {
			// After a reboot the number can be another program's, and PostgreSQL
			// would believe that it still runs.
			return true, os.Rename(pidfilePath(p.data), pidfilePath(p.data)+".stale")
		}
		if at.ready() {
			pid = at.pid
		}
		return at.ready(), nil
	})
	return pid, err
}

func isPostmaster(pid int, data string) bool {
	if runtime.GOOS == "linux" { // a postmaster works in its data directory
		dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		return err == nil && dir == data
	}
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.Contains(string(out), "postgres")
}
