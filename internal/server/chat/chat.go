// Package chat is what the protocols for chat clients share.
package chat

import (
	"github.com/parley-server/parley/internal/server"
)

// Desk is where a chat client is served.
type Desk struct{ *server.Server }
