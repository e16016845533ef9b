package cli_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// reading starts a command line with a stdin of the test.
func (s shell) reading(stdin io.Reader, args ...string) *keyboard {
	k := &keyboard{interrupts: make(chan os.Signal, 4), out: newWatched(), errs: newWatched(), code: make(chan int, 1)}
	go func() {
		k.code <- cli.Run(s.t.Context(), cli.Host{Stdin: stdin, Stdout: k.out, Stderr: k.errs, Environ: s.environ, Dir: s.dir,
			Interrupts: k.interrupts}, args)
	}()
	return k
}

// TestStdinBesideAMessage checks that stdin beside a message argument is reported, since the user
// may not have meant to send it, and that --no-input ignores it.
func TestStdinBesideAMessage(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if out, errs, code := sh.pipe(strings.NewReader("one\ntwo\n"), "send", "@say ok"); code != 0 ||
		!strings.Contains(errs, "begins with the 2 lines of stdin.") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := sh.pipe(strings.NewReader("one\ntwo\n"), "send", "--quiet", "@say ok"); code != 0 || errs != "" {
		t.Errorf("--quiet: exit code %d: %s", code, errs)
	}
	for _, stdin := range []string{"", "\n", "  \n\u00a0\t\r\n"} {
		if _, errs, code := sh.pipe(strings.NewReader(stdin), "send", "@say ok"); code != 0 || strings.Contains(errs, "stdin") {
			t.Errorf("%q: exit code %d: %s", stdin, code, errs)
		}
		if _, errs, code := sh.pipe(strings.NewReader(stdin), "send"); code != 2 || !strings.Contains(errs, "The message is missing.") {
			t.Errorf("%q alone: exit code %d: %s", stdin, code, errs)
		}
	}
	rest := strings.NewReader("the rest of a loop's input")
	if _, errs, code := sh.pipe(rest, "send", "--no-input", "@say ok"); code != 0 ||
		!strings.HasPrefix(errs, "Stdin is not read, as --no-input says") || rest.Len() == 0 {
		t.Errorf("--no-input: exit code %d, %d bytes are left: %s", code, rest.Len(), errs)
	}
	if _, errs, code := sh.pipe(rest, "send", "--no-input", "--quiet", "@say ok"); code != 0 || errs != "" {
		t.Errorf("--no-input --quiet: exit code %d: %s", code, errs)
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer nothing.Close()
	if _, errs, code := sh.pipe(nothing, "send", "--no-input", "@say ok"); code != 0 || strings.Contains(errs, "tdin") {
		t.Errorf("--no-input without stdin: exit code %d: %s", code, errs)
	}
	if out, errs, code := sh.pipe(strings.NewReader("@say ok"), "send", "--no-input"); code != 0 || out != "ok\n" {
		t.Errorf("--no-input without an argument: exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := sh.run("send", ""); code != 2 || !strings.Contains(errs, "The argument is empty") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestStdinThatSaysNothing checks that a command that waits for an open pipe reports that, and that
// Ctrl-C reports that nothing was sent.
func TestStdinThatSaysNothing(t *testing.T) {
	t.Parallel()
	slow.Test(t, "waits until a silent pipe is given up")
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=http://127.0.0.1:1", "PARLEY_WORKSPACE=test", "PARLEY_API_KEY=x"}}
	for _, c := range []struct{ args, says string }{
		{"send hi", "</dev/null"},
		{"send", "Waiting for the message on stdin."},
	} {
		stdin, writer := io.Pipe()
		k := sh.reading(stdin, strings.Fields(c.args)...)
		k.errs.wait(t, c.says)
		k.interrupts <- os.Interrupt
		if code := wait.Receive(t, "the exit code", k.code); code != 130 || !strings.Contains(k.errs.String(), "Nothing was sent.") {
			t.Errorf("parley %s: exit code %d: %s", c.args, code, k.errs)
		}
		writer.Close()
	}
	stdin, writer := io.Pipe()
	k := sh.reading(stdin, "skills", "run", "x", "--input-json", "@-")
	k.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", k.code); code != 130 || !strings.Contains(k.errs.String(), "Nothing was sent.") {
		t.Errorf("--input-json: exit code %d: %s", code, k.errs)
	}
	writer.Close()
}
