package cli_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/parley-server/parley/internal/cli"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/wait"
)

// pty opens a terminal. The test types at keyboard and reads the echoed output there.
func pty(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		need.Missing(t, "no terminals: %v", err)
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

// silent waits until a terminal does not echo input.
func silent(t *testing.T, terminal *os.File) {
	t.Helper()
	for echo := uint32(syscall.ECHO); echo != 0; {
		raw, err := terminal.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var state syscall.Termios
		_ = raw.Control(func(fd uintptr) {
			_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TCGETS, uintptr(unsafe.Pointer(&state)))
		})
		echo = state.Lflag & syscall.ECHO
	}
}

// person simulates a user at a terminal in which a command runs. The command's standard output goes
// to a file.
type person struct {
	t          *testing.T
	keys       *os.File
	terminal   *os.File
	screen     *watched
	out        *watched
	interrupts chan os.Signal
	code       chan int
	from       int // end of the output that was checked
}

func (s shell) attend(args ...string) *person {
	s.t.Helper()
	keys, terminal := pty(s.t)
	p := &person{t: s.t, keys: keys, terminal: terminal, screen: newWatched(), out: newWatched(), interrupts: make(chan os.Signal, 4),
		code: make(chan int, 1)}
	go func() { // ends when the terminal is closed
		buf := make([]byte, 4096)
		for {
			n, err := keys.Read(buf)
			if err != nil {
				return
			}
			_, _ = p.screen.Write(buf[:n])
		}
	}()
	go func() {
		p.code <- cli.Run(s.t.Context(), cli.Host{Stdin: terminal, Stdout: p.out, Stderr: terminal, Environ: s.environ, Dir: s.dir,
			Interrupts: p.interrupts}, args)
	}()
	return p
}

// sees waits for a text after the output that was checked before.
func (p *person) sees(text string) {
	p.t.Helper()
	p.screen.waitFrom(p.t, p.from, text)
	p.from += strings.Index(p.screen.String()[p.from:], text) + len(text)
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := p.keys.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) ends(code int) {
	p.t.Helper()
	if got := wait.Receive(p.t, "the end of the command", p.code); got != code {
		p.t.Errorf("exit code %d, want %d: %s%s", got, code, p.out, p.screen)
	}
}
