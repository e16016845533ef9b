package sandbox

import (
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

// judgeReport returns the first violation in a report from inside the sandbox, or "".
func judgeReport(report string) string {
	found := make(map[string]string)
	for line := range strings.Lines(report) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if path, ok := strings.CutPrefix(name, inside.Visible); ok {
			return path + " can be seen inside"
		}
		found[name] = value
	}
	if m := found[inside.UIDMap]; !strings.HasPrefix(m, "1000 ") || !strings.HasSuffix(m, " 1") {
		return "its user namespace has other users than one"
	}
	for _, who := range []string{inside.Status, inside.Init} {
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
			if value, ok := found[who+set]; !ok || strings.Trim(value, "0") != "" {
				return "its processes have capabilities (" + set + ")"
			}
		}
		switch {
		case found[who+"NoNewPrivs"] != "1":
			return "its processes may gain privileges"
		case found[who+"Seccomp"] != "2":
			return "system calls are not filtered"
		}
	}
	switch {
	case found[inside.Unix] == "":
		return "unix sockets can be made"
	case found[inside.Sysctl] == "":
		return "the kernel's settings can be written"
	}
	return ""
}

// isRecent reports whether a version such as "bubblewrap 0.8.0" is at least 0.8.
func isRecent(version string) bool {
	number, ok := strings.CutPrefix(version, "bubblewrap ")
	parts := strings.Split(number, ".")
	if !ok || len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major > 0 || minor >= 8)
}
