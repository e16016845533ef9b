package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestMain lets the test binary run as parley: the processes below are this binary.
func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_TEST_MAIN") == "1" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// parley returns a command line in a directory, without any setting.
func parley(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); name == "PATH" || name == "HOME" || name == "TMPDIR" || name == "LANG" {
			cmd.Env = append(cmd.Env, line)
		}
	}
	cmd.Env = append(cmd.Env, "PARLEY_TEST_MAIN=1")
	return cmd
}

// dev starts `serve --dev` and waits until the server reports its address and that it is ready.
func dev(t *testing.T, dir, listen string) (cmd *exec.Cmd, at string) {
	t.Helper()
	slow.Test(t, "runs processes")
	cmd = parley(t, dir, "serve", "--dev", "--listen", listen)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); wait.Result(t, "the end of the server", cmd.Wait) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "api  "); ok {
			at = strings.TrimPrefix(strings.TrimSpace(url), "http://")
		}
		if strings.Contains(lines.Text(), "ready in") {
			drained := make(chan struct{})
			go func() { defer close(drained); io.Copy(io.Discard, out) }()
			t.Cleanup(func() { cmd.Process.Kill(); wait.Receive(t, "the end of the drain", drained) })
			return cmd, at
		}
	}
	err = wait.Result(t, "the end of the server", cmd.Wait)
	if cmd.ProcessState.ExitCode() == 5 {
		need.Missing(t, "no private PostgreSQL here: %v", err)
	}
	t.Fatalf("serve --dev: %v", err)
	return nil, ""
}

func TestAnAnswerSurvivesKill9(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, listen := dev(t, dir, "127.0.0.1:0")

	send := parley(t, dir, "send", "@text 300 deltas at 100/s")
	out, err := send.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := send.Start(); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(out)
	if _, err := answer.ReadString('9'); err != nil {
		t.Fatal(err)
	}
	server.Process.Kill()
	wait.Result(t, "the end of the server", server.Wait)
	server, _ = dev(t, dir, listen)
	rest, err := io.ReadAll(answer)
	if err != nil {
		t.Fatal(err)
	}
	if err := wait.Result(t, "the end of send", send.Wait); err != nil {
		t.Errorf("send: %v", err)
	}
	var want strings.Builder
	for i := 10; i < 300; i++ {
		fmt.Fprintf(&want, "%d%s ", i, strings.Repeat(".", 11-len(fmt.Sprint(i))))
	}
	if got := string(rest); strings.TrimLeft(got, ". ") != want.String()+"\n" {
		t.Errorf("the rest of the answer: %q", got)
	}

	// Ctrl-C stops the server and then the private PostgreSQL.
	server.Process.Signal(os.Interrupt)
	if err := wait.Result(t, "the end of the server", server.Wait); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	reset := parley(t, dir, "dev", "reset", "--yes")
	if err := reset.Run(); err != nil {
		t.Errorf("dev reset after the stop: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".parley")); err == nil {
		t.Error("dev reset left .parley")
	}
}

func TestSIGTERMHandsTheTurnOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, _ := dev(t, dir, "127.0.0.1:0")
	second, at := dev(t, dir, "127.0.0.1:0") // joins the first server's database
	env, err := app.ReadDevEnv(filepath.Join(dir, ".parley"))
	if err != nil {
		t.Fatal(err)
	}

	send := parley(t, dir, "send", "--quiet", "@text 200 deltas at 100/s\n@say The end.")
	send.Env = append(send.Env, "PARLEY_URL=http://"+at, "PARLEY_WORKSPACE="+env.Workspace, "PARLEY_API_KEY="+env.APIKey)
	out, err := send.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := send.Start(); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(out)
	if _, err := answer.ReadString('9'); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	context.AfterFunc(ctx, func() { first.Process.Kill() })
	first.Process.Signal(syscall.SIGTERM) // either server may run the turn; the second one serves the stream
	if err := wait.Result(t, "the end of the first server", first.Wait); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	rest, err := io.ReadAll(answer)
	if err != nil || !strings.HasSuffix(string(rest), "199........ The end.\n") {
		t.Errorf("the answer ends %q, %v", rest[max(0, len(rest)-40):], err)
	}
	if err := wait.Result(t, "the end of send", send.Wait); err != nil {
		t.Errorf("send: %v", err)
	}
	second.Process.Signal(syscall.SIGTERM)
	if err := wait.Result(t, "the end of the second server", second.Wait); err != nil {
		t.Errorf("SIGTERM of the last: %v", err)
	}
}
