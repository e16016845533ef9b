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

// findOrphan finds a postmaster that runs without a guard. It waits for one that is stopping. It is
// called when no guard can be running.
func (p place) findOrphan(ctx context.Context) (pid int, err error) {
	err = pollUntil(ctx, func() (bool, error) {
		at, err := readPidfile(p.data)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		if !isAlive(at.pid) {
			// PostgreSQL replaces the file itself, after it has checked that no backend of the old
			// server is left.
			return true, nil
		}
		if !isPostmaster(at.pid, p.data) {
			return true, p.renameLockFiles(at)
		}
		if at.status == "ready" && at.sockets == "" {
			return true, fmt.Errorf("PostgreSQL runs as process %d without a Unix socket; stop it", at.pid)
		}
		if at.isReady() {
			pid = at.pid
		}
		return at.isReady(), nil
	})
	return pid, err
}

// renameLockFiles renames the lock files of a postmaster whose pid now belongs to another program,
// after a reboot, or to a zombie, in a container without an init. PostgreSQL would take both for a
// running server. It still finds the remaining backends of the old server, by the shared memory
// they hold.
func (p place) renameLockFiles(at pidfile) error {
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
	if runtime.GOOS == "linux" { // the working directory of a postmaster is its data directory
		dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		return err == nil && dir == data
	}
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.Contains(string(out), "postgres")
}
