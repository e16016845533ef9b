package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestATypedSecretIsNotEchoed(t *testing.T) {
	t.Parallel()
	keyboard, terminal := pty(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t), "PARLEY_VAULT_KEY=" + vaultKey}}
	sh.must("workspace", "create", "test")
	errs, code := newWatched(), make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), cli.Host{Stdin: terminal, Stdout: errs, Stderr: errs, Environ: sh.environ, Dir: sh.dir},
			[]string{"secrets", "set", "TOKEN", "--host", "a.example.com"})
	}()
	errs.wait(t, "Value of TOKEN (not shown): ")
	silent(t, terminal)
	if _, err := keyboard.WriteString(token + "\n"); err != nil {
		t.Fatal(err)
	}
	if got := wait.Receive(t, "the exit code", code); got != 0 {
		t.Fatalf("exit code %d: %s", got, errs)
	}
	// This line is the last output of the terminal.
	if _, err := terminal.WriteString("the end"); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	for buf := make([]byte, 1024); !strings.Contains(shown.String(), "the end"); {
		n, err := keyboard.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(buf[:n])
	}
	if strings.Contains(shown.String()+errs.String(), token[:8]) || !strings.Contains(sh.must("secrets", "list"), "stored") {
		t.Errorf("the terminal shows %q, the command %q", &shown, errs)
	}
}
