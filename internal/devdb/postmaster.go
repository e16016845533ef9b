//go:build unix

package devdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// startServer starts PostgreSQL and waits until it accepts connections. Backends of a postmaster
// that was killed can outlive it for a moment, and PostgreSQL refuses to start until they end.
func (g *guard) startServer() error {
	tries := 1
	if _, err := os.Stat(pidfilePath(g.place.data)); !errors.Is(err, fs.ErrNotExist) {
		tries = 20
	}
	for {
		err := g.launchPostmaster()
		if tries--; err == nil || tries == 0 {
			return err
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (g *guard) launchPostmaster() error {
	size := logSize(g.place.log)
	cmd := exec.Command(filepath.Join(g.Bin, "postgres"), g.Args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	g.place.as.applyTo(cmd)
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	g.pid, g.ended = cmd.Process.Pid, ended
	for {
		if at, err := readPidfile(g.place.data); err == nil && at.pid == g.pid && at.isReady() {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("PostgreSQL did not start: %s", endReason(g.place.log, size, err))
		case <-time.After(poll):
		}
	}
}

// adoptPostmaster watches a postmaster that is not a child of this process.
func (g *guard) adoptPostmaster() {
	g.writeReport("adopting PostgreSQL, process %d", g.Adopt)
	g.pid, g.ended = g.Adopt, make(chan error, 1)
	go func() {
		for isAlive(g.Adopt) && isPostmaster(g.Adopt, g.place.data) {
			time.Sleep(20 * poll)
		}
		var err error
		if _, left := os.Stat(pidfilePath(g.place.data)); left == nil {
			err = errors.New("killed") // a clean shutdown removes the file
		}
		g.ended <- err
	}()
}

// stopServer requests a fast shutdown, then an immediate one. Both keep every commit.
func (g *guard) stopServer() error {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if err := syscall.Kill(g.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop PostgreSQL: %w", err)
		}
		select {
		case <-g.ended:
			return nil
		case <-time.After(time.Minute):
			g.writeReport("PostgreSQL does not stop")
		}
	}
	return errors.New("PostgreSQL still runs")
}
