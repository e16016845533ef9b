package app

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// The linker sets these: -X github.com/parley-server/parley/internal/app.version=v1.2.3. Without
// commit and date, the Go command's record of the checkout is used.
var version, commit, date string

// Build identifies this build.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Date     string `json:"date,omitempty"`     // of the commit, in RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisBuild returns what the linker and the Go command wrote into this binary.
func ThisBuild() Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = cmp.Or(b.Commit, s.Value)
			case "vcs.time":
				b.Date = cmp.Or(b.Date, s.Value)
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
		// A version that the Go command derived from a commit is less precise than ours.
		if v := info.Main.Version; b.Version == "" && v != "(devel)" && !strings.Contains(v, "-0.") && !strings.Contains(v, "+dirty") {
			b.Version = v
		}
	}
	b.Version = cmp.Or(b.Version, "v0.1.0")
	b.Commit = b.Commit[:min(len(b.Commit), 12)]
	return b
}
