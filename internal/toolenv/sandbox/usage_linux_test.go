package sandbox

import (
	"bufio"
	"os/exec"
	"strconv"
	"testing"
)

// TestProcessesShareThePagesOfFiles runs one program forty times: its pages are in memory once.
func TestProcessesShareThePagesOfFiles(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `for i in $(seq 40); do (echo ready; read) <&0 & done; wait`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
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
