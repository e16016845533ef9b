package call

import (
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/a2a/v03"
)

// Version is a version of the protocol.
type Version struct {
	task.Encoding
	message.Dialect
}

// The versions.
var (
	V03 = &Version{v03.Encoding{}, v03.Dialect}
	V10 = &Version{task.V10{}, message.V10}
)

// VersionOf returns the version that a request names, nil if it names none. It ignores the third
// number of a version.
func VersionOf(r *http.Request) (v *Version, ok bool) {
	text := strings.TrimSpace(r.Header.Get("A2A-Version"))
	if text == "" {
		text = strings.TrimSpace(r.URL.Query().Get("A2A-Version"))
	}
	parts := strings.SplitN(text, ".", 3)
	if len(parts) >= 2 {
		text = parts[0] + "." + parts[1]
	}
	switch text {
	case "":
		return nil, true
	case V03.Name:
		return V03, true
	case V10.Name:
		return V10, true
	}
	return V10, false
}
