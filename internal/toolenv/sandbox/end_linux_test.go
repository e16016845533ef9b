package sandbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// newMark returns an environment variable that identifies processes.
func newMark() string { return "SANDBOX_TEST_MARK=" + rand.Text() }

// marked lists the host's processes that have a mark.
func marked(mark string) (pids []string) {
	list, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range list {
		if text, _ := os.ReadFile(path); bytes.Contains(text, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// stubborn starts processes that try everything to survive, and prints a line for each.
const stubborn = `
	trap '' TERM HUP INT QUIT PIPE
	setsid nohup bash -c "trap '' TERM HUP INT QUIT PIPE; sleep 1000; sleep 1000" > /dev/null 2>&1 < /dev/null &
	( setsid bash -c 'sleep 1000 & sleep 1000 & exec > /dev/null 2>&1; wait' & ) &
	( exec > /dev/null 2>&1 < /dev/null; cd /; setsid sleep 1000 & disown -a; exit ) &
	nohup sleep 1000 > /dev/null 2>&1 &
	/run/init attack orphans
	echo ready
`

// makeOrphans leaves grandchildren whose parents have ended.
func makeOrphans([]string) error {
	for range 3 {
		cmd := exec.Command("/bin/sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 & exit")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

// signal is an Output that reports its first write.
type signal struct {
	on   string
	came chan struct{}
	text strings.Builder
}

func (s *signal) Write(p []byte) (int, error) {
	before := strings.Contains(s.text.String(), s.on)
	s.text.Write(p)
	if !before && strings.Contains(s.text.String(), s.on) {
		close(s.came)
	}
	return len(p), nil
}

func TestNothingOutlivesRun(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	changed := errors.New("the person changed their mind")
	for name, c := range map[string]struct {
		script string
		limits sandbox.Limits
		cancel bool
		want   sandbox.Result
	}{
		"normal end": {stubborn, sandbox.Limits{}, false, sandbox.Result{}},
		"failure":    {stubborn + "exit 3", sandbox.Limits{}, false, sandbox.Result{Exit: 3}},
		"own death":  {stubborn + "kill -9 $$", sandbox.Limits{}, false, sandbox.Result{Exit: 137}},
		"timeout": {stubborn + "sleep 1000", sandbox.Limits{Time: 10 * time.Second}, false,
			sandbox.Result{Exit: 137, Killed: "killed after 10 s"}},
		"cancel": {stubborn + "sleep 1000", sandbox.Limits{}, true, sandbox.Result{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark()
			ctx, cancel := context.WithCancelCause(t.Context())
			out := &signal{on: "ready", came: make(chan struct{})}
			seen := make(chan int, 1)
			go func() {
				<-out.came
				seen <- len(marked(mark))
				if c.cancel {
					cancel(changed)
				}
			}()
			got, err := s.Run(ctx, sandbox.Command{Argv: bash(c.script), Folder: folder(t, s), Env: []string{mark}, Serve: held,
				Output: out, Limits: c.limits})
			left := marked(mark)
			cancel(nil)
			if c.cancel && err != changed || !c.cancel && err != nil {
				t.Fatalf("the error is %v; %s", err, &out.text)
			}
			got.Took = 0
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if n := wait.Receive(t, "what a reader saw", seen); n < 6 && (c.cancel || c.want.Killed != "") { // else they may have ended
				t.Errorf("only %d processes tried to stay", n)
			}
			if len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

func TestCancelledBeforeItsStart(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	never := errors.New("never mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(never)
	if _, err := s.Run(ctx, sandbox.Command{Argv: bash("touch ran"), Folder: where}); err != never {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(where, "ran")); err == nil {
		t.Error("the command ran")
	}
}

// TestCancelledAtAnyMoment cancels while the sandbox is created, and later.
func TestCancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs many commands")
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	for i := range 40 {
		mark := newMark()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i)*500*time.Microsecond, errors.New("enough"))
		_, err := s.Run(ctx, sandbox.Command{Argv: bash("setsid sleep 1000 & sleep 1000"), Folder: where, Env: []string{mark}, Serve: held})
		if err == nil || err.Error() != "enough" {
			t.Errorf("cancelled after %d half milliseconds: %v", i, err)
		}
		cancel()
		if left := marked(mark); len(left) > 0 {
			t.Errorf("cancelled after %d half milliseconds: processes %v are left", i, left)
		}
	}
}
