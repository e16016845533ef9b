package sandbox

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
)

// TestProcessesShareThePagesOfFiles runs one program forty times: its pages are in memory once. The
// program has its own network, as every socket of the host would otherwise count.
func TestProcessesShareThePagesOfFiles(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `for i in $(seq 40); do (echo ready; read) <&0 & done; wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		need.Missing(t, "user namespaces: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	for range 40 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	once, each := memoryOf(pid, pssFile), memoryOf(pid, rssFile)
	if each < once+40*mib/4 {
		t.Errorf("%d bytes, and %d with the pages of each process", once, each)
	}
	if passesMemory(pid, (once+each)/2) || !passesMemory(pid, once/2) {
		t.Errorf("wrong at %d and %d bytes", (once+each)/2, once/2)
	}
	if got := memoryOf(pid, func(_, status string) int64 { return pssFile("gone", status) }); got < each/2 {
		t.Errorf("%d bytes of processes that hide their pages, %d otherwise", got, each)
	}
}
