package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/dbtest"
)

// pty opens a terminal: keyboard is where somebody types and sees what is echoed.
func pty(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	raw, err := keyboard.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n, unlock uint32
	err = raw.Control(func(fd uintptr) {
		_, _, e1 := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock)))
		_, _, e2 := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGPTN, uintptr(unsafe.Pointer(&n)))
		if e1 != 0 || e2 != 0 {
			t.Fatal(e1, e2)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}

func TestATypedSecretIsNotEchoed(t *testing.T) {
	t.Parallel()
	keyboard, terminal := pty(t)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t), "PARLEY_VAULT_KEY=" + vaultKey}}
	sh.must("workspace", "create", "test")
	errs, code := newWatched(), make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), cli.Host{Stdin: terminal, Stdout: errs, Stderr: errs, Environ: sh.environ, Dir: sh.dir}, []string{"secrets", "set", "TOKEN", "--host", "a.example.com"})
	}()
	errs.wait(t, "Value of TOKEN (it is not shown): ")
	for silent := false; !silent; { // until the echo is off
		raw, err := terminal.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var state syscall.Termios
		_ = raw.Control(func(fd uintptr) {
			_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TCGETS, uintptr(unsafe.Pointer(&state)))
		})
		silent = state.Lflag&syscall.ECHO == 0
	}
	if _, err := keyboard.WriteString(token + "\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 0 {
		t.Fatalf("exit code %d: %s", got, errs)
	}
	// What the terminal showed is all that is left to read before this.
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
