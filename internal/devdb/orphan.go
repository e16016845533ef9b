//go:build unix

package devdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
			return true, p.forget(at)
		}
		if at.status == "ready" && at.sockets == "" {
			return true, fmt.Errorf("PostgreSQL runs as process %d without a Unix socket; stop it", at.pid)
		}
		if at.ready() {
			pid = at.pid
		}
		return at.ready(), nil
	})
	return pid, err
}

// forget puts the lock files of a postmaster aside whose number is now another
// program's, after a reboot, or a zombie's, in a container without an init. To
// PostgreSQL both look like a server that runs. Backends that are left of it are
// still found, by the shared memory they hold.
func (p place) forget(at pidfile) error {
	locks := []string{pidfilePath(p.data)}
	if at.sockets != "" {
		locks = append(locks, filepath.Join(at.sockets, fmt.Sprintf(".s.PGSQL.%d.lock", at.port)))
	}
	for _, path := range locks {
		if err := os.Rename(path, path+".stale"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func isPostmaster(pid int, data string) bool {
	if runtime.GOOS == "linux" { // a postmaster works in its data directory
		dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		return err == nil && dir == data
	}
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.Contains(string(out), "postgres")
}
