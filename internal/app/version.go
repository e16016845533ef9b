package app

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by the linker: -X github.com/parley-server/parley/internal/app.version=v1.2.3
var version string

// Build identifies this build.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisBuild returns what the linker and the Go command wrote into this binary.
func ThisBuild() Build {
	b := Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value[:min(len(s.Value), 12)]
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
		// A version that the Go command derived from a commit is less precise than ours.
		if v := info.Main.Version; b.Version == "" && v != "(devel)" && !strings.Contains(v, "-0.") && !strings.Contains(v, "+dirty") {
			b.Version = v
		}
	}
	if b.Version == "" {
		b.Version = "v0.1.0"
	}
	return b
}
