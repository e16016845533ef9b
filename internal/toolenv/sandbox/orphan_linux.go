package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

// sweepOrphans kills processes of bubblewrap if their first process was killed, with its service,
// before they were bound to its life. They wait for it forever: no command ever runs in them.
func sweepOrphans() {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !isBwrap(dir) {
			continue
		}
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if isOrphan(dir) { // checked now, for the process of this descriptor
			_ = unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0) // another user's process cannot be killed
		}
		unix.Close(process)
	}
}

// isBwrap compares the command line with the one that startProcess uses.
func isBwrap(dir string) bool {
	line, _ := os.ReadFile(dir + "/cmdline")
	return strings.HasSuffix(string(line), "\x00--\x00"+inside.Path+"\x00"+inside.StageArgument+"\x00")
}

// isOrphan reports whether a process is the first of a namespace below ours, and its parent, which
// made that namespace, has ended.
func isOrphan(dir string) bool {
	text, _ := os.ReadFile(dir + "/status")
	field := func(name string) []string {
		_, rest, _ := strings.Cut(string(text), "\n"+name+":")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.Fields(line)
	}
	parent, numbers := field("PPid"), field("NSpid")
	first := len(numbers) > 1 && numbers[len(numbers)-1] == "1"
	return isBwrap(dir) && first && len(parent) == 1 && !isBwrap("/proc/"+parent[0])
}
