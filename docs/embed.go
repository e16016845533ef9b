// Package docs embeds the documentation. The built-in model answers questions about Parley
// from it.
package docs

import "embed"

// Files holds every page: the index, and the pages of the folders.
//
//go:embed *.md */*.md guides/clients/*.md
var Files embed.FS
