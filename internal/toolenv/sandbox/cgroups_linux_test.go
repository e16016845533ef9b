package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnCgroup(t *testing.T) {
	t.Parallel()
	const (
		unified = "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 24 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n40 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 " +
			"cgroup2 rw\n"
		container = "900 880 0:22 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	)
	for name, c := range map[string]struct{ self, mounts, want string }{
		"a unit":            {"0::/system.slice/parley.service\n", unified, "/sys/fs/cgroup/system.slice/parley.service"},
		"the machine's top": {"0::/\n", unified, "/sys/fs/cgroup"},
		"a divided group":   {"0::/system.slice/parley.service/parley-service\n", unified, "/sys/fs/cgroup/system.slice/parley.service"},
		"both versions":     {"4:memory:/x\n0::/unit\n", hybrid, "/sys/fs/cgroup/unified/unit"},
		"a part mounted":    {"0::/docker/abc\n", container, "/sys/fs/cgroup"},
		"another part":      {"0::/docker/abd\n", container, ""},
		"outside":           {"0::/../x\n", unified, ""},
		"version 1 alone":   {"4:memory:/x\n", hybrid, ""},
		"not mounted":       {"0::/\n", "25 20 0:22 / /proc rw - proc proc rw\n", ""},
	} {
		got, err := ownCgroup(c.self, c.mounts)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestGroupsOfOthersAreLeftAlone has a group with a process of another program, in a directory that
// only looks like one of cgroup v2.
func TestGroupsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "session.scope")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(above, "cgroup.procs"): "", filepath.Join(dir, "cgroup.procs"): "1\n",
		filepath.Join(dir, "cgroup.type"): "domain\n", filepath.Join(dir, "cgroup.controllers"): "cpu memory pids\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := divideGroups(dir); err == nil || !strings.Contains(err.Error(), "has other processes than the service's") {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "parley-*")); err != nil || len(left) > 0 {
		t.Errorf("%v were made, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpu io\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := divideGroups(dir); err == nil || !strings.Contains(err.Error(), "does not have the controller memory") {
		t.Errorf("%v", err)
	}
}
