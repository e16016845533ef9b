package e2e_test

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

const runnerToken = "a token that the tests' servers and runners share"

// startRunner starts a runner, and returns the environment of servers that use it. again starts
// another at the same address.
func startRunner(t *testing.T) (first *server, env []string, again func() *server) {
	t.Helper()
	box := contained(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	again = func() *server {
		return startServer(t, addr, "/healthz", append(box, "PARLEY_RUNNER_TOKEN="+runnerToken), binary, "runner", "--listen", addr)
	}
	return again(), []string{"PARLEY_SANDBOX=require", "PARLEY_RUNNER=http://" + addr, "PARLEY_RUNNER_TOKEN=" + runnerToken}, again
}

// TestLostRunner kills the runner while it runs a command, and then freezes it. The call ends with an
// unknown outcome, and the next one has the folder as it was before. The log distinguishes the two.
func TestLostRunner(t *testing.T) {
	t.Parallel()
	runner, env, again := startRunner(t)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "bash", "allow", "--workspace", "w")
	s := w.serve(t, env)
	killed, frozen := seconds(), seconds()
	session, _ := w.start(t, s, bash("echo kept > kept")+bash("echo half > half; "+stubborn(killed))+
		bash("ls; echo more >> kept; "+stubborn(frozen))+bash("ls; cat kept")+"@say done")
	uses := 0
	frames, err := w.follow(t.Context(), session, "", func(f frame) {
		if f.Event != "tool_use" {
			return
		}
		switch uses++; uses {
		case 2:
			wait.For(t, "the command runs", func() bool { return processes(t, "sleep "+killed) >= 3 })
			runner.kill()
			wait.For(t, "no process of the command is left", func() bool { return processes(t, killed) == 0 })
			runner = again()
		case 3:
			wait.For(t, "the command runs", func() bool { return processes(t, "sleep "+frozen) >= 3 })
			runner.signal(syscall.SIGSTOP)
		case 4:
			runner.signal(syscall.SIGCONT)
			wait.For(t, "the command has ended", func() bool { return processes(t, frozen) == 0 })
		}
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	got := outputs(t, frames)
	if len(got) != 4 || got[0] != "[no output]" || !strings.HasPrefix(got[1], "interrupted, outcome unknown: ") || got[2] != got[1] ||
		got[3] != "kept\nkept\n" {
		t.Errorf("%q", got)
	}
	for _, why := range []string{"it has ended the connection", "it gives no answer"} {
		if n := strings.Count(string(s.said.bytes()), "a command: "+why); n != 1 {
			t.Errorf("%d lines of the log say that %s", n, why)
		}
	}
}

// TestRunnerOutlivesItsServer kills a server whose command runs on a runner, and cancels a turn whose
// runner is frozen.
func TestRunnerOutlivesItsServer(t *testing.T) {
	t.Parallel()
	runner, env, _ := startRunner(t)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "bash", "allow", "--workspace", "w")
	reader := w.serve(t, nil, "--no-workers")
	first := w.serve(t, env)
	for _, end := range []string{"kill", "cancel", "freeze"} {
		sleep := seconds()
		session, _ := w.start(t, reader, bash(fmt.Sprintf("echo %s; ", end)+stubborn(sleep)))
		wait.For(t, "the command runs", func() bool { return processes(t, "sleep "+sleep) >= 3 })
		switch end {
		case "kill":
			first.kill()
			wait.For(t, "the command has ended", func() bool { return processes(t, sleep) == 0 })
			w.cancel(t, reader, session)
			w.serve(t, env)
		case "cancel":
			canceled := w.cancel(t, reader, session)
			if left := processes(t, sleep); !canceled.Canceled || canceled.Deferred || left > 0 {
				t.Errorf("%+v, and %d processes are left", canceled, left)
			}
		case "freeze":
			runner.signal(syscall.SIGSTOP)
			if canceled := w.cancel(t, reader, session); !canceled.Canceled || !canceled.Deferred {
				t.Errorf("with a frozen runner: %+v", canceled)
			}
			runner.signal(syscall.SIGCONT)
			wait.For(t, "the command has ended", func() bool { return processes(t, sleep) == 0 })
		}
	}
}
