package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// TestProcess1IsBoundToo covers process 1, which the command may write into: it has no more rights
// than the command.
func TestProcess1IsBoundToo(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	_, out := run(t, s, sandbox.Command{Argv: bash(`
		for what in status limits; do
			for who in 1 self; do grep -E 'Cap|Seccomp|NoNewPrivs|Max' /proc/$who/$what > $what.$who; done
			cmp $what.1 $what.self && cat $what.1
		done`)})
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "Seccomp:\t2", "NoNewPrivs:\t1"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	for _, line := range []string{"Max processes 128 128", "Max file size 67108864 67108864", "Max data size 1073741824 1073741824",
		"Max core file size 0 0"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), line) {
			t.Errorf("%q is missing in %s", line, out)
		}
	}
}

func TestNamespacesAreItsOwn(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	names := []string{"user", "pid", "net", "ipc", "uts", "cgroup", "mnt"}
	_, out := run(t, s, sandbox.Command{Argv: bash("cd /proc/self/ns; readlink " + strings.Join(names,
		" ") + "; cat /proc/self/oom_score_adj; cut -d ' ' -f 6 /proc/self/stat")})
	lines := strings.Fields(out)
	if len(lines) != len(names)+2 {
		t.Fatalf("the command printed %q", out)
	}
	for i, name := range names {
		ours, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil || !strings.HasPrefix(lines[i], name) || lines[i] == ours {
			t.Errorf("its namespace %s is %s, ours: %s, %v", name, lines[i], ours, err)
		}
	}
	if rank := lines[len(names)]; rank != "1000" {
		t.Errorf("the kernel's memory killer ranks it %s", rank)
	}
	if session := lines[len(names)+1]; session == "0" { // one of the host's sessions
		t.Error("the command is not in its own session")
	}
}

// TestInheritedFilesAreClosed opens a file that the service passes on by accident.
func TestInheritedFilesAreClosed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "inherited")
	if err := os.WriteFile(secret, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A number above those of the files that are passed on purpose.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s := open(t, sandbox.Config{})
	_, out := run(t, s, sandbox.Command{Argv: bash("ls /proc/self/fd"), Serve: held})
	if got := strings.Fields(out); strings.Join(got, " ") != "0 1 2 3" { // 3 is the directory
		t.Errorf("the command has files %v", got)
	}
}
