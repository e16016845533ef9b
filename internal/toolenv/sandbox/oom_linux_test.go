package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// tryToOutlive asks the kernel to kill other processes first.
func tryToOutlive([]string) error {
	for _, process := range []string{"self", "1"} {
		path := "/proc/" + process + "/oom_score_adj"
		score, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tried(process+" is "+strings.TrimSpace(string(score)), nil)
		tried(path, os.WriteFile(path, []byte("0"), 0))
	}
	return nil
}

// TestKernelKillsCommandsFirst runs a command that wants the kernel to kill the service instead
// when memory is short.
func TestKernelKillsCommandsFirst(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	want := map[string]string{
		"self is 1000": "done", "1 is 1000": "done",
		"/proc/self/oom_score_adj": "open /proc/self/oom_score_adj: " + unix.EROFS.Error(),
		"/proc/1/oom_score_adj":    "open /proc/1/oom_score_adj: " + unix.EROFS.Error(),
	}
	ends := attempt(t, s, with("outlive"))
	for name, end := range want {
		if ends[name] != end {
			t.Errorf("%s: %q, want %q; all: %v", name, ends[name], end, ends)
		}
	}
}
