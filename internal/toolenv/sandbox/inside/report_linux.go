package inside

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// writeReport reports the properties of the sandbox as a command sees them. hidden are paths that
// must not exist there.
func writeReport(hidden []string) {
	var b strings.Builder
	line := func(name, value string) { b.WriteString(name + "\t" + value + "\n") }
	uidMap, _ := os.ReadFile("/proc/self/uid_map")
	line(UIDMap, strings.Join(strings.Fields(string(uidMap)), " "))
	for prefix, path := range map[string]string{Status: "/proc/self/status", Init: "/proc/1/status"} {
		text, _ := os.ReadFile(path)
		for l := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(l, ":"); ok {
				line(prefix+name, strings.TrimSpace(value))
			}
		}
	}
	for _, path := range hidden {
		if _, err := os.Lstat(path); err == nil {
			line(Visible+path, "")
		}
	}
	if _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		line(Unix, err.Error())
	}
	if _, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0); err != nil {
		line(Sysctl, err.Error())
	}
	if _, err := os.Stdout.WriteString(b.String()); err != nil {
		os.Exit(1)
	}
}
