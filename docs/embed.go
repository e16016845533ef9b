// Package docs is the documentation, embedded into the binary: what the built-in
// guide answers from.
package docs

import "embed"

// Files holds every page, *.md.
//
//go:embed *.md
var Files embed.FS
