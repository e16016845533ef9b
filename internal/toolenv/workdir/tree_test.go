package workdir

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryDirectoryIsOpenedOnce traverses a deep folder and visits all its paths in order.
// Resolved from the top, they would open 60,000 directories.
func TestEveryDirectoryIsOpenedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const branches, depth, files = 3, 100, 100
	for branch := range branches {
		deep := filepath.Join(dir, fmt.Sprint(branch), strings.Repeat("d/", depth-1))
		if err := os.MkdirAll(deep, 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range files {
			if err := os.WriteFile(filepath.Join(deep, fmt.Sprint(n)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, err := openRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := &walk{tree: &tree{top: root}, files: MaxFiles}
	defer w.Close()
	if err := w.walkFolder(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := branches * (depth + files); len(w.found) != want || w.opened != branches*depth {
		t.Errorf("%d names in %d opened directories; want %d in %d", len(w.found), w.opened, want, branches*depth)
	}
	w.opened = 0
	for _, path := range slices.Sorted(maps.Keys(w.found)) {
		in, name, err := w.findParent(path)
		if err == nil {
			_, err = in.Lstat(name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.opened > branches*depth {
		t.Errorf("%d directories were opened on the way, want %d", w.opened, branches*depth)
	}
}

// TestTreeFailsWithoutADirectory requests paths that do not exist or lead through a file.
func TestTreeFailsWithoutADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/f"), []byte("there"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := openRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files := &tree{top: root}
	defer files.Close()
	for _, path := range []string{"a/b/c/d", "a/f/x", "none/x"} {
		if _, _, err := files.findParent(path); err == nil {
			t.Errorf("%s has a directory", path)
		}
		in, name, err := files.findParent("a/f")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := in.ReadFile(name); string(text) != "there" {
			t.Errorf("after %s: %q, %v", path, text, err)
		}
	}
}
