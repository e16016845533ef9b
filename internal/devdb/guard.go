//go:build unix

package devdb

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// guardName is argument zero of a guard: ps shows it, and it makes this binary run as a guard.
const guardName = "parley-postgres-guard"

// init is used instead of a function that main calls: a binary that forgot the call would start
// copies of itself.
func init() {
	if len(os.Args) == 2 && os.Args[0] == guardName {
		os.Exit(runGuard(os.Args[1]))
	}
}

// task is a guard's input, and the content of guard.lock.
type task struct {
	Dir, Bin, Version string
	Args              []string
	UID, GID          int
	Drop              bool
	Linger            time.Duration
	Adopt             int // a postmaster that lost its guard
}

// runGuard is the main function of the guard. The parent reads one line from it: "ready" or the
// error.
func runGuard(text string) int {
	runtime.LockOSThread() // the death signal is sent when this thread ends, not this process
	const report = 3
	syscall.CloseOnExec(report)
	parent := os.NewFile(report, "parent")
	g := guard{}
	err := g.beginServer(text)
	if err != nil {
		fmt.Fprintln(parent, err)
	} else {
		fmt.Fprintln(parent, "ready")
	}
	parent.Close()
	if err == nil {
		err = g.watchServer()
	}
	if err != nil {
		g.writeReport("%v", err)
		return 1
	}
	return 0
}

type guard struct {
	task
	place place
	users *flock
	self  *flock
	pid   int
	ended chan error // the exit error of pid
}

func (g *guard) writeReport(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s guard: %s\n", time.Now().UTC().Format("2006-01-02 15:04:05.000 MST"), fmt.Sprintf(format, args...))
}

func (g *guard) beginServer(text string) (err error) {
	if err := json.Unmarshal([]byte(text), &g.task); err != nil {
		return err
	}
	g.place = placeAt(g.Dir, account{uid: g.UID, gid: g.GID, drop: g.Drop})
	if g.users, err = openLock(g.place.users); err != nil {
		return err
	}
	if g.self, err = openLock(g.place.guard); err != nil {
		return err
	}
	// No other guard is running: the start lock ensures that. A watcher may hold the lock for a
	// moment.
	if err := g.self.waitLock(exclusive); err != nil {
		return err
	}
	if g.Adopt != 0 {
		g.adoptPostmaster()
	} else if err := g.startServer(); err != nil {
		return err
	}
	if err := g.self.file.Truncate(0); err != nil {
		return err
	}
	_, err = g.self.file.WriteAt([]byte(text), 0)
	return err
}

// watchServer ends when no process uses the server anymore or one has stopped it.
func (g *guard) watchServer() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	unused := g.unusedSignal()
	var crashes []time.Time
	for {
		select {
		case sig := <-stop:
			g.writeReport("%v: stopping PostgreSQL", sig)
			return g.stopServer()
		case <-unused:
			if g.takeStartLock() {
				return g.stopServer()
			}
			unused = g.unusedSignal()
		case err := <-g.ended:
			if err == nil { // stopped by pg_ctl
				g.writeReport("PostgreSQL was stopped")
				return nil
			}
			crashes = append(crashes, time.Now())
			if n := len(crashes); n > 5 && time.Since(crashes[n-5]) < time.Minute {
				return fmt.Errorf("PostgreSQL keeps dying: %w", err)
			}
			g.writeReport("PostgreSQL died (%v): starting it again", err)
			if err := g.startServer(); err != nil {
				return err
			}
		}
	}
}

// unusedSignal sends, after Linger, that no process used the server for a moment.
func (g *guard) unusedSignal() <-chan struct{} {
	c := make(chan struct{})
	go func() {
		if err := g.users.waitLock(exclusive); err != nil {
			g.writeReport("wait for users: %v", err)
			return
		}
		g.users.unlock()
		time.Sleep(max(g.Linger, poll))
		close(c)
	}()
	return c
}

// takeStartLock takes the start lock for good if no process uses the server or is about to.
func (g *guard) takeStartLock() bool {
	start, err := openLock(g.place.start)
	if err != nil {
		return false
	}
	if free, err := start.tryLock(exclusive); err != nil || !free {
		start.close()
		return false
	}
	if free, err := g.users.tryLock(exclusive); err != nil || !free {
		start.close()
		return false
	}
	return true
}
