package render

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
)

// Connect describes the question for access to a tool server. link is the absolute address of its
// link.
func Connect(q event.ConnectRequired, link string) string {
	what := "access"
	if len(q.Scopes) > 0 {
		what = "more access (" + strings.Join(q.Scopes, ", ") + ")"
	}
	return fmt.Sprintf("The tool server %s needs %s. Until %s the user can grant it with this link: %s",
		q.Server, what, q.ExpiresAt.UTC().Format("15:04 MST"), link)
}
