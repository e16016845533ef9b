package render

import (
	"fmt"

	"github.com/parley-server/parley/internal/event"
)

// Connect describes the question for access to a tool server. link is the absolute address of its
// link.
func Connect(q event.ConnectRequired, link string) string {
	return fmt.Sprintf("The tool server %s needs access. Until %s the user can grant it with this link: %s", q.Server, q.ExpiresAt.UTC().Format("15:04 MST"), link)
}
