package workdir

import (
	"os"
	"strings"
)

// tree opens the directories of a folder, each from the one above it, and keeps those on the path
// of the last one open. Paths that are visited directory by directory then cost the same at every
// depth: resolved from the top, each name 120 levels down costs 120 system calls.
type tree struct {
	top    *os.Root
	levels []level
	opened int // total number of opened directories
}

// level is an open directory, with its name in the one above it.
type level struct {
	name string
	root *os.Root
}

// findParent opens the directory of a path and returns it with the last name of the path. The
// directory stays open until the next call.
func (t *tree) findParent(path string) (*os.Root, string, error) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return t.top, path, nil
	}
	dir, err := t.openDir(path[:i])
	return dir, path[i+1:], err
}

// openDir opens a directory, which stays open until the next call. "." is the folder.
func (t *tree) openDir(path string) (*os.Root, error) {
	var names []string
	if path != "." {
		names = strings.Split(path, "/")
	}
	kept := 0
	for kept < min(len(names), len(t.levels)) && names[kept] == t.levels[kept].name {
		kept++
	}
	t.closeBelow(kept)
	dir := t.top
	if kept > 0 {
		dir = t.levels[kept-1].root
	}
	for _, name := range names[kept:] {
		below, err := dir.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		t.opened++
		t.levels = append(t.levels, level{name, below})
		dir = below
	}
	return dir, nil
}

// closeBelow keeps the first n levels.
func (t *tree) closeBelow(n int) {
	for _, l := range t.levels[n:] {
		l.root.Close()
	}
	t.levels = t.levels[:n]
}

// Close closes the directories, but not the folder.
func (t *tree) Close() { t.closeBelow(0) }
