package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// spoken sends its name to every client, and counts how often it ended.
func spoken(ended *atomic.Int32) *sandbox.Direct {
	tcp := func(name string) func(context.Context, net.Listener) error {
		return func(_ context.Context, l net.Listener) error {
			defer ended.Add(1)
			for {
				c, err := l.Accept()
				if errors.Is(err, net.ErrClosed) {
					return nil
				}
				if err != nil {
					return err
				}
				fmt.Fprintln(c, name, c.LocalAddr())
				c.Close()
			}
		}
	}
	return &sandbox.Direct{TLS: tcp("tls"), Plain: tcp("plain"), DNS: func(_ context.Context, c net.PacketConn) error {
		defer ended.Add(1)
		for {
			buf := make([]byte, 100)
			n, from, err := c.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
			if _, err := c.WriteTo(fmt.Appendf(nil, "dns %s", buf[:n]), from); err != nil {
				return err
			}
		}
	}}
}

// dials lets a shell connect to ports and print the data it receives.
const dials = `
dial() { { exec 3<>/dev/tcp/$1/$2 && cat <&3; exec 3>&-; } 2>&1 | sed 's/.*: //' | tail -n 1; }
dial 127.0.0.1 80; dial 127.1.2.3 443; dial 127.255.1.1 80
dial 127.0.0.1 53; dial 127.1.2.3 22
exec 4<>/dev/udp/127.0.0.1/53; echo who >&4; dd bs=99 count=1 status=none <&4
exec 4<>/dev/udp/127.1.2.3/53; echo who >&4; dd bs=99 count=1 status=none <&4 2>/dev/null || echo nobody
`

// TestProgramsWithoutAProxyAreServed checks that programs without proxy support connect to ports of
// the service, for every address, that no other port is open, and that a command needs no privilege
// for it.
func TestProgramsWithoutAProxyAreServed(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{Transparent: true})
	var ended atomic.Int32
	r, out := run(t, s, sandbox.Command{Argv: bash(dials + "cat /proc/1/status /proc/self/status | grep '^Cap[^B]' | sort -u"),
		Direct: spoken(&ended)})
	want := "plain 127.0.0.1:80\ntls 127.1.2.3:443\nplain 127.255.1.1:80\nConnection refused\nConnection refused\ndns who\nnobody\n" +
		"CapAmb:\t0000000000000000\nCapEff:\t0000000000000000\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
	if r.Exit != 0 || strings.ReplaceAll(out, "bash: ", "") != want {
		t.Errorf("%+v: %s", r, out)
	}
	if n := ended.Load(); n != 3 {
		t.Errorf("%d of three have ended with the command", n)
	}
}

// TestNobodyIsServedWithoutAWord checks that these ports do not exist unless the operator enables
// them.
func TestNobodyIsServedWithoutAWord(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	var ended atomic.Int32
	_, out := run(t, s, sandbox.Command{Argv: bash(dials), Direct: spoken(&ended)})
	if strings.Contains(out, "tls") || strings.Contains(out, "plain") || strings.Contains(out, "dns") ||
		!strings.Contains(out, "refused") || ended.Load() != 0 {
		t.Errorf("%s", out)
	}
}

// TestPortsOfTheHostAreNotOpened uses a bubblewrap that does not create a network namespace.
func TestPortsOfTheHostAreNotOpened(t *testing.T) {
	t.Parallel()
	open(t, sandbox.Config{}) // skips the test without a sandbox
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	dir := passable(t)
	forgets := program(t, filepath.Join(dir, "bwrap"), `test $1 = --version && exec echo bubblewrap 0.8.0
exec /bin/bash -c 'f=$(mktemp) && sed -z /^--unshare-net$/d /proc/self/fd/$2 >$f && eval "exec $2<$f" && rm $f && exec `+real+
		` "$@"' bash "$@"`)
	s, err := sandbox.Open(t.Context(), sandbox.Config{Bwrap: forgets, Users: commandUsers, Dir: dir, Transparent: true})
	if err == nil {
		s.Close()
		t.Fatal("the sandbox opened")
	}
	if !strings.Contains(err.Error(), "no network of its own") {
		t.Error(err)
	}
}
