package sandbox_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// TestAsAnotherUser runs all tests again as an unprivileged user if the test runs as root.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs many commands")
	need.Root(t)
	open(t, sandbox.Config{}) // skips the test without a sandbox
	dir := passable(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests, temp := filepath.Join(dir, "sandbox.test"), filepath.Join(dir, "tmp")
	if err := copyFile(exe, tests); err != nil {
		t.Fatal(err)
	}
	const user = 65534
	if err := errors.Join(os.Mkdir(temp, 0o700), os.Chown(temp, user, user), os.Chown(tests, user, user)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tests, "-test.v")
	if deadline, ok := t.Deadline(); ok {
		cmd.Args = append(cmd.Args, "-test.timeout="+time.Until(deadline).String())
	}
	cmd.Dir = temp
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "HOME="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	ended := regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+)`)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		m := ended.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		t.Run(m[2], func(t *testing.T) {
			switch m[1] {
			case "FAIL":
				t.Fail()
			case "SKIP":
				t.Skip()
			}
		})
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
