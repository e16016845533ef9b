package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// service is a process that runs a stubborn command until it is killed. It prints the output of the
// command.
func service(args []string) int {
	s, err := sandbox.Open(context.Background(), sandbox.Config{Users: commandUsers, Dir: args[0]})
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return 1
	}
	where, err := s.NewFolder("service")
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return 1
	}
	os.Stdout.WriteString("open\n")
	for {
		_, err := s.Run(context.Background(), sandbox.Command{
			Argv: bash(args[2]), Folder: where, Env: []string{args[1]}, Serve: held, Output: os.Stdout,
		})
		if err != nil {
			os.Stderr.WriteString(err.Error())
			return 1
		}
	}
}

// TestNothingOutlivesTheService kills the service while a command runs, and while sandboxes are
// being made. The next process removes the leftovers on disk.
func TestNothingOutlivesTheService(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs many commands")
	open(t, sandbox.Config{}) // skips the test without a sandbox
	dir := passable(t)
	kill := func(t *testing.T, script, on string, least int, after time.Duration) {
		mark := newMark()
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "service", dir, mark, script)
		out := &signal{on: on, came: make(chan struct{})}
		var problem bytes.Buffer
		cmd.Stdout, cmd.Stderr = out, &problem
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		select {
		case <-out.came:
		case <-ended:
			t.Fatalf("the service ended: %s", &problem)
		case <-time.After(wait.Limit):
			_ = cmd.Process.Kill()
			t.Fatalf("no output of the service: %s", &problem)
		}
		if n := len(marked(mark)); n < least {
			t.Errorf("only %d processes tried to stay", n)
		}
		<-time.After(after) // at any moment
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wait.Receive(t, "the end", ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(20 * time.Second)
		for left := marked(mark); len(left) > 0; left = marked(mark) {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("processes %v are left", left)
			}
		}
	}
	kill(t, stubborn+"sleep 1000", "ready", 6, 0)
	for i := range 12 {
		kill(t, "setsid sleep 1000 & exit", "open", 0, time.Duration(i)*2*time.Millisecond)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) == 0 {
		t.Fatalf("the killed services left no files: %v", err)
	}
	s := open(t, sandbox.Config{Dir: dir})
	if list, err = os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%d directories exist, want only the new one; %v", len(list), err)
	}
	if r, out := run(t, s, sandbox.Command{Argv: bash("echo works")}); r.Exit != 0 || out != "works\n" {
		t.Errorf("%+v, %q", r, out)
	}
}
