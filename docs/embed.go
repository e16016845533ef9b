// Package docs is the documentation, embedded into the binary: what the built-in
// guide answers from.
package docs

import "embed"

// Files holds every page, *.md, and one for each kind of client in clients.
//
//go:embed *.md clients/*.md
var Files embed.FS
