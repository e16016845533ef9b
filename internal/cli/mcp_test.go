package cli_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/testing/wait"
)

const saying = `{"jsonrpc":"2.0","id":%,"method":"tools/call","params":{"name":"send_message","arguments":{"command":"$"},` +
	`"_meta":{"progressToken":1}}}` + "\n"

func mcpCall(id, command string) string {
	return strings.NewReplacer("%", id, "$", command).Replace(saying)
}

// TestMCPEndsWithItsStdin checks that requests that were piped in are answered after the end of
// stdin. The command does not wait for a turn that takes longer; the turn continues.
func TestMCPEndsWithItsStdin(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	start := func(stdin io.Reader, patience time.Duration) *keyboard {
		k := &keyboard{out: newWatched(), errs: newWatched(), code: make(chan int, 1)}
		go func() {
			k.code <- cli.Run(t.Context(), cli.Host{Stdin: stdin, Stdout: k.out, Stderr: k.errs, Environ: sh.environ, Dir: sh.dir,
				Patience: patience}, []string{"mcp"})
		}()
		return k
	}
	k := start(strings.NewReader(mcpCall("1", "@say one")+mcpCall("2", "@wait 1s\\n@say two")), time.Hour)
	if code, out := wait.Receive(t, "the exit code", k.code), k.out.String(); code != 0 || k.errs.String() != "" ||
		!strings.Contains(out, `"id":1`) || !strings.Contains(out, `"id":2`) {
		t.Errorf("piped: exit code %d, %s\n%s", code, k.errs.String(), out)
	}

	stdin, program := io.Pipe()
	k = start(stdin, time.Nanosecond)
	if _, err := io.WriteString(program, mcpCall("3", "@wait 10m")); err != nil {
		t.Fatal(err)
	}
	k.out.wait(t, "session_id: ")
	session := strings.SplitAfter(k.out.String(), "session_id: ")[1][:36]
	program.Close()
	if code := wait.Receive(t, "the exit code", k.code); code != 1 || !strings.Contains(k.errs.String(), "A running turn continues") {
		t.Errorf("held: exit code %d, %s", code, k.errs.String())
	}
	if out := k.out.String(); !strings.Contains(out, `"error":{"code":-32000,"message":"The input ended before this response`) ||
		strings.Count(out, `"id":3`) != 1 {
		t.Errorf("held: %s", out)
	}
	sh.must("sessions", "cancel", session) // the session exists and can be canceled
}

// TestMCPEndsWhenNobodyReads checks that the command ends if its stdout is closed.
func TestMCPEndsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	reader, stdout := io.Pipe()
	reader.Close()
	stdin, program := io.Pipe()
	defer program.Close()
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), cli.Host{Stdin: stdin, Stdout: stdout, Stderr: io.Discard, Environ: sh.environ, Dir: sh.dir},
			[]string{"mcp"})
	}()
	if _, err := io.WriteString(program, mcpCall("1", "@say one")); err != nil {
		t.Fatal(err)
	}
	if code := wait.Receive(t, "the exit code", code); code == 0 {
		t.Error("it reports success")
	}
}
