// Package demo is what the workspace demo knows and can do in dev mode: the wiki, the
// files and the skills of Alder & Finch, a company of forty people that makes desks and
// does not exist.
package demo

import "embed"

// Files holds the documents. The paths are those of the knowledge store: wiki pages
// are wiki/<page>.md, everything else is a plain file.
//
//go:embed wiki policies contacts
var Files embed.FS

// Skills holds one folder for each skill, with its SKILL.md.
//
//go:embed skills
var Skills embed.FS
