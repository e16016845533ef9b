package sandbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/toolenv/sandbox"

	"github.com/parley-server/parley/internal/testing/wait"
)

// TestOrphansAreSwept creates the leftovers of a service that was killed at the one moment at which
// bubblewrap's processes are not yet bound to each other.
func TestOrphansAreSwept(t *testing.T) {
	t.Parallel()
	open(t, sandbox.Config{}) // skips the test without a sandbox
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	never, hold, err := os.Pipe() // bubblewrap waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	args, err := os.CreateTemp(t.TempDir(), "args")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(args, strings.Join([]string{"--unshare-user", "--unshare-pid", "--ro-bind", "/usr", "/usr", "--info-fd", "4",
		"--userns-block-fd", "5", ""}, "\x00"))
	if _, err := args.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bwrap", "--args", "3", "--", "/run/init", "stage")
	cmd.ExtraFiles = []*os.File{args, write, never}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(commandUsers.First), Gid: uint32(commandUsers.First)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(cmd.ExtraFiles, args) {
		f.Close()
	}
	var info struct {
		Child int `json:"child-pid"`
	}
	err = json.NewDecoder(read).Decode(&info)
	read.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = wait.Result(t, "the end of the process", cmd.Wait)
	open(t, sandbox.Config{})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", info.Child))
		if len(line) == 0 { // it has ended, and its exit code may not be collected yet
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			_ = syscall.Kill(info.Child, syscall.SIGKILL)
			t.Fatalf("process %d is left: %q", info.Child, line)
		}
	}
}
