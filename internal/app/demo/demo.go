// Package demo contains the demo workspace of development mode: the wiki, the files and the skills
// of Alder & Finch, a fictional company of forty people that makes desks.
package demo

import "embed"

// Files contains the documents. The paths are those of the knowledge store: wiki pages
// are wiki/<page>.md, everything else is a plain file.
//
//go:embed wiki policies contacts
var Files embed.FS

// Skills contains one folder for each skill, with its SKILL.md.
//
//go:embed skills
var Skills embed.FS
